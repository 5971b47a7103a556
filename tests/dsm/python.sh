#!/bin/bash
# FLAVOURS: none
# TIMEOUT: 120
# PROCESSORS: 2
# The Python module: buffers, NumPy arrays on remote memory, atomic operations, protection, errors; and the example.
set -euo pipefail
[ -z "$SHIMA_SANITIZE" ] || { echo "python3 is not built with the sanitizer"; exit 77; }
# shellcheck source=tests/tool/common.sh
. "$SHIMA_SOURCE_DIR/tests/tool/common.sh"
export PYTHONPATH=$SHIMA_SOURCE_DIR/python LD_LIBRARY_PATH=$SHIMA_BUILD_DIR/lib PYTHONDONTWRITEBYTECODE=1
python=
for candidate in /usr/bin/python3 "$SHIMA_SOURCE_DIR"/build/deps/*/bin/python3; do
  if "$candidate" -c 'import numpy' 2>/dev/null; then python=$candidate && break; fi
done
[ -n "$python" ] || { echo "no python3 has NumPy"; exit 77; }

cat >program.py <<'EOP'
import array
import random

import numpy

from shima import dsm


def refused(kind, words, call, *arguments):
    try:
        call(*arguments)
    except kind as error:
        assert words in str(error), error
        return
    raise AssertionError(f"{call} {arguments}: no {kind}")


def buffers(memory, right):
    data = array.array("d", [memory.task, 2.5])
    memory.put(right, 512, data)
    memory.put(right, 528, b"bytes", blocking=True)
    memory.barrier()
    left = (memory.task - 1) % memory.tasks
    assert memory.local[512:528].cast("d").tolist() == [left, 2.5]
    assert memory.get(right, 528, 5) == b"bytes" and memory.get(right, 512, bytearray(0)) == b""
    back = array.array("d", [0, 0])
    assert memory.get(right, 512, back) is back and back == data
    refused(ValueError, "read-only", memory.get, right, 0, b"1234")
    refused(ValueError, "not contiguous", memory.put, right, 0, memoryview(b"12345678")[::2])
    memory.barrier()


def arrays(memory, right):
    shape = (5, 6, 7)
    far, model = memory.array(right, shape, "i4", 4096), numpy.zeros(shape, "i4")
    far[...] = 0
    dice = random.Random(memory.task)
    for step in range(200):
        key = dice.choice([
            (), ..., dice.randrange(5), slice(1, 4), (slice(None), slice(1, 6, 2)), (2, ..., 3), (4, 5, 6), -1,
            (slice(None, None, -1), 0), numpy.array([0, 3, 3]), (numpy.array([1, 2]), slice(None), 4), slice(3, 3),
            model % 3 == step % 3])
        if dice.random() < 0.5:
            far[key] = step
            model[key] = step
        assert numpy.array_equal(far[key], model[key]), (key, far[key], model[key])
    rows = numpy.arange(42, dtype="f8").reshape(6, 7)
    far[2] = rows
    model[2] = rows
    assert numpy.array_equal(numpy.asarray(far), model) and len(far) == 5 and far.shape == shape
    assert isinstance(far[1, 2, 3], numpy.int32)
    refused(IndexError, "index 9", lambda: far[9])
    refused(dsm.AddressError, "has donated", memory.array, right, 1 << 40)
    memory.barrier()
    own = numpy.frombuffer(memory.local, "i4", 210, 4096).reshape(shape)
    assert own[2, 5, 6] == 41


def others(memory, right):
    memory.local[0:16] = bytes(16)
    memory.barrier()
    before = memory.fetch_add(0, 0, 2)
    assert before % 2 == 0 and before < 2 * memory.tasks
    memory.fetch_or(0, 8, 1 << memory.task, bits=32)
    memory.barrier()
    assert memory.swap(right, 64, 5) >= 0
    assert int.from_bytes(memory.get(0, 0, 8), "little") == 2 * memory.tasks
    assert memory.compare_and_swap(memory.task, 1 << 19, 0, 9) and not memory.compare_and_swap(memory.task, 1 << 19, 0, 9)
    memory.barrier()
    at = memory.alloc(100, dsm.READ_ONLY)
    refused(dsm.ViolationError, "protection violation", memory.put, memory.task, at, b"1")
    refused(PermissionError, "protection violation", memory.fetch_add, memory.task, at, 1)
    memory.protect(at, 128, dsm.NONE)
    refused(dsm.Error, "protection violation", memory.get, memory.task, at, 1)
    memory.free(at)
    refused(IndexError, "tasks are 0 to", memory.get, memory.tasks, 0, 1)
    refused(ValueError, "way 'pigeons'", dsm.open, 0, "pigeons")
    refused(IndexError, "is not between", memory.get, 1 << 32, 0, 8)
    refused(IndexError, "is not between", memory.get, 0, 1 << 64, 8)
    refused(IndexError, "is not between", memory.fetch_add, 0, (1 << 64) + 8, 1)
    refused(IndexError, "is not between", dsm.open, (1 << 64) + 8)
    word = memory.array(memory.task, (1,), "u8", 256)
    word[0] = 5
    assert memory.fetch_add(memory.task, 256, -2) == 5 and word[0] == 3
    assert memory.lost() == 0 and memory.size(right) == 1 << 20
    memory.barrier()


for way in dsm.WAYS:
    with dsm.open(1 << 20, way) as memory:
        right = (memory.task + 1) % memory.tasks
        buffers(memory, right)
        if way != "udp":
            arrays(memory, right)
        others(memory, right)
with dsm.open(4096) as memory:
    own = numpy.frombuffer(memory.local, "u1")
    part = memory.local[8:16]
    refused(BufferError, "in use", memory.close)
    del own
    refused(BufferError, "in use", memory.close)
    del part
with dsm.open(1 << 34) as memory:  # takes addresses only
    far = memory.array((memory.task + 1) % memory.tasks, (1 << 16, 1 << 15), "f8")
    far[5:9:2, 7] = 3
    assert far[5:9:2, 6:9].tolist() == [[0, 3, 0], [0, 3, 0]] and far.size == 1 << 31
    memory.barrier()
print("done")
EOP
expect_status 0 'program' "$SHIMA" run --lapi -n 3 "$python" program.py
[ "$(grep -o 'done' out | wc -l)" = 3 ] || fail "program: $(cat out)"
expect_status 0 'example' "$SHIMA" run --lapi -n 4 "$python" "$SHIMA_SOURCE_DIR/examples/dsm_squares.py"
expect_output '^\[0 1 4 9\]' 'example'
expect_status 1 'no task' "$python" -c 'from shima import dsm; dsm.open()'
expect_output 'shima run --lapi' 'no task'
finish
