#!/usr/bin/env python3
# FLAVOURS: mpich-wheel
# TIMEOUT: 200
"""The programs of this directory over two hosts, by every way, started by an MPI's launcher under `shima run --lapi`.

The hosts are namespaces with a cable between them (bench/two_hosts.py). They have one kernel, so a variable keeps tasks
from mapping each other's memory. A killed task must be known on the other host within a second.
"""

import os
import pathlib
import re
import subprocess
import sys

SOURCES = os.environ["SHIMA_SOURCE_DIR"]
sys.path.insert(0, os.path.join(SOURCES, "bench"))
from two_hosts import TwoHosts, Unavailable

LIBRARIES = os.path.join(os.environ["SHIMA_BUILD_DIR"], "lib")
SHIMA = os.environ["SHIMA"]
SKIP = 77
KNOWN_WITHIN_S = 1.0
WAYS = range(5)


def compile_program(name):
    sanitize = [f"-fsanitize={os.environ['SHIMA_SANITIZE'].replace('+', ',')}"] if os.environ.get("SHIMA_SANITIZE") else []
    subprocess.run(["cc", "-std=gnu11", "-g", "-O1", "-Wall", str(pathlib.Path(SOURCES, f"tests/dsm/{name}.c")), "-o", name,
                    *sanitize, f"-I{SOURCES}/include", f"-L{LIBRARIES}", f"-Wl,-rpath,{LIBRARIES}", "-lshima-dsm",
                    "-pthread"], check=True)


def run(hosts, tasks, command):
    job = hosts.run_mpi(os.environ["MPIEXEC"], tasks, ["env", "SHIMA_DSM_APART=1", *command],
                        before=[SHIMA, "run", "--lapi"], timeout=60, capture_output=True, text=True, errors="replace",
                        stdin=subprocess.DEVNULL)
    print(f"{' '.join(command)}, {tasks} tasks: {job.returncode}", flush=True)
    return job.returncode, job.stdout + job.stderr


def check_runs(hosts, tasks, *command):
    code, output = run(hosts, tasks, list(command))
    return [] if code == 0 else [f"{command} with {tasks} tasks: exit code {code}\n{output[-3000:]}"]


def check_loss(hosts, way):
    """Behind a shell, so that the launcher does not end the others."""
    _, output = run(hosts, 3, ["sh", "-c", f"./loss {way} kill; exit 0"])
    times = [float(text) for text in re.findall(r"known after ([0-9.]+) s", output)]
    if output.count("survives") != 2:
        return [f"loss by way {way}: not both survive\n{output[-3000:]}"]
    return [f"loss by way {way}: known after {time} s only" for time in times if time > KNOWN_WITHIN_S]


def main():
    for name in ("calls", "model", "loss"):
        compile_program(name)
    problems = []
    try:
        with TwoHosts() as hosts:
            for way in WAYS:
                problems += check_runs(hosts, 3, "./calls", str(way))
                problems += check_runs(hosts, 2, "./model", str(way), "300", str(way + 1))
            for way in (0, 2):
                problems += check_loss(hosts, way)
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return SKIP
    print("\n".join(problems), file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
