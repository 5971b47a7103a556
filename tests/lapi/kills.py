#!/usr/bin/env python3
# FLAVOURS: none
# TIMEOUT: 240
# PROCESSORS: 2
"""A task of a LAPI job is killed at each step: on one host, in one address space, and over two hosts. The others get an
error from each call that needs it, their error handlers are called, and they go on (kill.c)."""

import os
import re
import select
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.environ["SHIMA_SOURCE_DIR"], "tests/lapi"))
from jobs_lib import command_of, compile_program, on_each_way

TASKS = 3
KNOWN_WITHIN_S = 1.0
GUARD_S = 60

FAULTS = ["lapi.join", "lapi.meet", "lapi.shown", "lapi.gather", "lapi.gather:3", "lapi.part", "lapi.part:7", "lapi.fence",
          "lapi.fence:4", "lapi.barrier", "lapi.barrier:4", "lapi.term"]
STEPS = ["header", "completion", "between"]
MOMENTS_US = [0, 300, 1000, 2000, 5000, 10000, 20000, 40000, 80000]
EVERYDAY = {"processes": ["lapi.join", "lapi.shown", "lapi.gather", "lapi.barrier:4", "lapi.part", "lapi.term", "completion", "within2000"],
            "one space": ["lapi.shown", "header", "lapi.fence:4", "within1000"],
            "two hosts": ["lapi.join", "lapi.meet", "lapi.gather", "lapi.part", "header", "within5000"]}


def product():
    steps = FAULTS + STEPS + [f"within{moment}" for moment in MOMENTS_US]
    only_hosts = {"lapi.meet"}
    only_streams = {"lapi.part", "lapi.part:7"}  # with pointers nothing waits
    return {"processes": [step for step in steps if step not in only_hosts],
            "one space": [step for step in steps if step not in only_hosts | only_streams],
            "two hosts": steps}


class Death(threading.Thread):
    """Notes when the victim ends, which has the other end of a named pipe open."""

    def __init__(self, name):
        super().__init__(daemon=True)
        if not os.path.exists(name):
            os.mkfifo(name)
        self.pipe = os.open(name, os.O_RDONLY | os.O_NONBLOCK)
        self.at = None

    def run(self):
        end = select.poll()
        end.register(self.pipe, select.POLLIN)
        if end.poll(GUARD_S * 1000):
            self.at = time.monotonic()
        os.close(self.pipe)


def run_once(way, hosts, step):
    env = dict(os.environ, VICTIM=str(TASKS - 1))
    if step.startswith("lapi."):
        name, _, nth = step.partition(":")
        env["SHIMA_FAULT"] = f"kill:{name}:{TASKS - 1}:{nth or 1}"
    command = command_of(way, hosts, TASKS, ["./kill", step])
    death = Death("dying")
    death.start()
    job = subprocess.run(command, env=env, capture_output=True, text=True, errors="replace", timeout=GUARD_S, stdin=subprocess.DEVNULL)
    death.join(1)
    output = job.stdout + job.stderr
    known = [max(map(float, pair)) for pair in re.findall(r"survives: call ([0-9.]+) handler ([0-9.]+)", output)]
    if len(known) != TASKS - 1 or death.at is None or "not been killed" in output:
        return None, output
    return max(known) - death.at, output


def check(way, hosts, step):
    """A machine that has other work may be late once."""
    try:
        for _ in range(2):
            after_s, output = run_once(way, hosts, step)
            if after_s is None:
                return [f"{way}, {step}: not as expected\n{output[-3000:]}"]
            print(f"{way}, {step}: known after {after_s:.3f} s", flush=True)
            if after_s <= KNOWN_WITHIN_S:
                return []
    except subprocess.TimeoutExpired as late:
        return [f"{way}, {step}: a wait does not end\n{(late.stderr or b'').decode(errors='replace')[-3000:]}"]
    return [f"{way}, {step}: known after {after_s:.1f} s only"]


def main(cases):
    compile_program("kill.c", "kill")
    begun = time.monotonic()

    def problems_of(way, hosts):
        problems = []
        for step in cases.get(way, []):
            problems += check(way, hosts, step)
        print(f"{way}: {len(cases.get(way, []))} kills, {time.monotonic() - begun:.1f} s", flush=True)
        return problems

    return on_each_way(problems_of)


if __name__ == "__main__":
    sys.exit(main(EVERYDAY))
