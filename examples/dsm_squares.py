# Each task writes into a row of task 0's memory:  shima run --lapi -n 4 python3 dsm_squares.py
from shima import dsm

with dsm.open(1 << 20) as memory:
    row = memory.array(0, (memory.tasks,), "i8", offset=64)
    row[memory.task] = memory.task**2
    memory.barrier()
    last = memory.fetch_add(0, 0, 1) == memory.tasks - 1  # the last one to come here
    if last:
        print(row[...])
