#!/usr/bin/env python3
# FLAVOURS: mpich-wheel
# TIMEOUT: 120
"""LAPI tasks on two hosts whose cable is cut: the partner is lost after SHIMA_NODE_TIMEOUT, and calls that need it fail. So it
is if two hosts lose each other while data moves, and both still reach the meeting place on a third."""

import os
import pathlib
import subprocess
import sys
import time

SOURCES = os.environ["SHIMA_SOURCE_DIR"]
sys.path[:0] = [os.path.join(SOURCES, "bench"), os.path.join(SOURCES, "tests/lapi")]
from hosts import SHIMA, compile_program
from two_hosts import TwoHosts, Unavailable

TIMEOUT_S = 2
GUARD_S = 60
SKIP = 77


def wait_for(what, condition, output):
    deadline = time.monotonic() + GUARD_S
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"after {GUARD_S} s: no {what}\n{output.read_text()[-3000:]}")
        time.sleep(0.05)


def check_cut():
    output = pathlib.Path("output")
    with TwoHosts() as hosts, output.open("w") as sink:
        job = subprocess.Popen(hosts.mpi_command(os.environ["MPIEXEC"], 2, ["./loss", "cut"], before=[SHIMA, "run", "--lapi"]),
                               env=dict(os.environ, SHIMA_NODE_TIMEOUT=str(TIMEOUT_S)), stdin=subprocess.DEVNULL,
                               stdout=sink, stderr=sink)
        try:
            wait_for("task that is ready", pathlib.Path("ready").exists, output)
            hosts.call(1, ["ip", "link", "set", "eth0", "down"])
            cut_at = time.monotonic()
            wait_for("survivor", lambda: "task 0 survives" in output.read_text(), output)
            print(f"the survivor's calls have ended {time.monotonic() - cut_at:.1f} s after the cable was cut")
        finally:
            job.kill()
            job.wait()
    pathlib.Path("ready").unlink()


def check_apart():
    output = pathlib.Path("output")
    with TwoHosts(count=3) as hosts, output.open("w") as sink:
        tasks = [" ".join(["env", f"PMI_RANK={task}", "PMI_SIZE=2", *hosts.enter(task + 1), "./partners", "apart", "&"]) for task in (0, 1)]
        job = subprocess.Popen([*hosts.enter(0), SHIMA, "run", "--lapi", "sh", "-c", " ".join([*tasks, "wait"])],
                               env=dict(os.environ, SHIMA_NODE_TIMEOUT=str(TIMEOUT_S)), stdin=subprocess.DEVNULL, stdout=sink, stderr=sink)
        try:
            wait_for("task that is ready", pathlib.Path("ready").exists, output)
            time.sleep(0.2)
            pathlib.Path("cut").touch()
            for port in ("port1", "port2"):
                hosts.call(0, ["ip", "link", "set", port, "type", "bridge_slave", "isolated", "on"])
            cut_at = time.monotonic()
            wait_for("survivor", lambda: output.read_text().count(" survives") == 2, output)
            print(f"both tasks' calls have ended {time.monotonic() - cut_at:.1f} s after their hosts lost each other")
            if job.wait(timeout=GUARD_S) != 0:
                sys.exit(f"the job failed: {job.returncode}\n{output.read_text()[-3000:]}")
        finally:
            job.kill()
            job.wait()


def main():
    compile_program("loss")
    compile_program("partners")
    try:
        check_cut()
        check_apart()
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return SKIP
    return 0


if __name__ == "__main__":
    sys.exit(main())
