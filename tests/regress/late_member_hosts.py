#!/usr/bin/env python3
# FLAVOURS: mpich-wheel
# TIMEOUT: 120
"""A rank of another host that comes to an open after the others have given up waiting for it, and those that have not
waited for it themselves, get the error, too (mpiio/comm/introduction/attendance.h).

Not with Open MPI, whose ranks on these hosts see each other's processes and so know that the rank is only late.
"""

import os
import re
import subprocess
import sys

SOURCES = os.environ["SHIMA_SOURCE_DIR"]
sys.path.insert(0, os.path.join(SOURCES, "bench"))
from two_hosts import TwoHosts, Unavailable

RANKS = 7
LATE_S = 3  # rank 0 gives up after two seconds, and ends the job two or three seconds later
RUN = ('if [ ${PMI_RANK:-$OMPI_COMM_WORLD_RANK} = %d ]; then exec "$@" late %d; else exec "$@" late 0; fi' %
       (RANKS - 1, LATE_S))
SKIP = 77


def main():
    member = os.path.abspath("member")
    subprocess.run([os.environ["MPICC"], "-O1", "-Wall", f"-I{SOURCES}/tests", "-o", member,
                    f"{SOURCES}/tests/regress/stock_member.c"], check=True)
    command = ["env", "SHIMA_OPEN_TIMEOUT=2", "sh", "-c", RUN, "sh", os.environ["SHIMA"], "exec", member]
    try:
        with TwoHosts() as hosts:
            job = hosts.run_mpi(os.environ["MPIEXEC"], RANKS, command, timeout=60, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT)
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return SKIP
    refused = {int(rank) for rank in re.findall(rf"rank (\d+) of {RANKS}: refused", job.stdout)}
    named = f"rank {RANKS - 1} of the communicator did not come within 2 s" in job.stdout
    if refused == set(range(RANKS)) and named:
        return 0
    print(f"refused: {refused}; the late rank was named: {named}; in:\n{job.stdout[-4000:]}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
