#!/usr/bin/env python3
# FLAVOURS: none
# TIMEOUT: 240
"""`shima dse run` on this host: exit codes, standard streams, signals, and the end of everything whatever is killed."""

import os
import pathlib
import signal
import subprocess
import sys
import time

from dse_lib import LIBRARIES, SANITIZE, SHIMA, SOURCES, Job, Problems, compile_program, run

problems = Problems()


def check_exit_codes():
    problems.expect("all succeed", run("-n", 3, "true")[0], 0)
    problems.expect("one fails", run("-n", 3, "sh", "-c", "exit $((SHIMA_DSE_TASK == 1 ? 7 : 0))")[0], 7)
    problems.expect("the first one counts", run("-n", 2, "sh", "-c", "[ $SHIMA_DSE_TASK = 1 ] || sleep 0.5; exit $((SHIMA_DSE_TASK + 4))")[0], 5)
    code, _, errors = run("-n", 2, "sh", "-c", "[ $SHIMA_DSE_TASK = 0 ] || kill -SEGV $$; sleep 60")
    problems.expect("a killed task", code, 128 + signal.SIGSEGV)
    problems.contains("a killed task", errors, "task 1 on host")
    problems.contains("a killed task", errors, "killed by signal 11")
    code, output, _ = run("--survive", "-n", 2, "sh", "-c", "[ $SHIMA_DSE_TASK = 0 ] || kill -9 $$; sleep 0.3; echo goes on")
    problems.expect("--survive", (code, output), (137, "goes on\n"))
    code, _, errors = run("-n", 3, "./no-such-program")
    problems.expect("no program", (code, errors.count("\n")), (127, 1))
    problems.contains("no program", errors, "starting ./no-such-program")
    pathlib.Path("plain").write_text("")
    problems.expect("no right to execute", run("./plain")[0], 126)


def check_streams():
    code, output, errors = run("-n", 3, "--tag", "sh", "-c", "cat; echo out; echo err >&2; printf part", text="a\nb\n")
    problems.expect("tags", sorted(output.split("\n")), sorted(["", "[0] a", "[0] b", *[f"[{i}] {w}" for i in range(3) for w in ("out", "part")]]))
    problems.expect("tagged errors", sorted(errors.split()), sorted(["[0]", "[1]", "[2]", "err", "err", "err"]))
    problems.expect("input of task 2", run("-n", 3, "--stdin", 2, "--tag", "cat", text="x\n")[1], "[2] x\n")
    problems.expect("input of all", sorted(run("-n", 3, "--stdin", "all", "--tag", "cat", text="x\n")[1].split("\n")), ["", "[0] x", "[1] x", "[2] x"])
    problems.expect("input of none", run("--stdin", "none", "cat", text="x\n")[1], "")
    text = "".join(f"{i} {'y' * (i % 1000)}\n" for i in range(4000))
    problems.expect("2 MB through a task", run("cat", text=text)[1] == text, True)
    problems.expect("input that nobody reads", run("-n", 2, "true", text=text)[0], 0)
    lines = run("-n", 4, "sh", "-c", "for i in $(seq 500); do echo $SHIMA_DSE_TASK$SHIMA_DSE_TASK$SHIMA_DSE_TASK; done")[1].split()
    problems.expect("whole lines", sorted(lines), sorted(str(i) * 3 for i in range(4) for _ in range(500)))
    job = Job("-n", 2, "yes")  # nobody takes the output
    job.process.stdout.read(1)
    time.sleep(0.3)
    job.process.stdout.close()
    problems.expect("the reader has gone", job.process.wait(timeout=60), -signal.SIGPIPE)
    problems.expect("left when the reader has gone", job.left(), [])


def check_environment():
    code, output, _ = run("-n", 2, "--topology", "mesh:1x2", "--bind", "core", "sh", "-c",
                          "echo $SHIMA_DSE_TASK/$SHIMA_DSE_TASKS $SHIMA_DSE_TOPOLOGY ${SHIMA_DSE_JOB##*.} $PMI_RANK $SLURM_PROCID $PWD",
                          environment={"PMI_RANK": "5", "SLURM_PROCID": "9"})
    lines = [line.split() for line in sorted(output.splitlines())]
    problems.expect("variables", [line[:2] + line[3:] for line in lines], [[f"{i}/2", "mesh:1x2", os.getcwd()] for i in range(2)])
    problems.expect("one job", len({line[2] for line in lines}), 1)
    shown = [line.split("cpus ")[1].split(";")[0] for line in run("--show", "-n", 3, "--bind", "core", "x")[1].splitlines()[2:]]
    bound = run("-n", 3, "--tag", "--bind", "core", "sh", "-c", "taskset -cp $$ | sed 's/.*: //'")[1].splitlines()
    problems.expect("cpus of bound tasks", sorted(bound), [f"[{i}] {cpus}" for i, cpus in enumerate(shown)])
    free = run("python3", "-c", "import os; print(sorted(os.sched_getaffinity(0)))")[1]
    problems.expect("cpus of tasks that are not bound", free, f"{sorted(os.sched_getaffinity(0))}\n")


def check_signals():
    trap = "trap 'echo got; exit 3' {}; echo ready; while :; do sleep 0.05; done"
    for name in ("INT", "USR1"):
        job = Job("-n", 2, "sh", "-c", trap.format(name))
        ready = [job.process.stdout.readline() for _ in range(2)]
        job.process.send_signal(getattr(signal, f"SIG{name}"))
        code, output, errors = job.end()
        problems.expect(f"SIG{name}", (ready, code, output, "killed" in errors), (["ready\n"] * 2, 3, "got\ngot\n", False))
    job = Job("-n", 2, "sh", "-c", "trap '' INT TERM; echo ready; while :; do sleep 0.05; done")
    job.process.stdout.readline(), job.process.stdout.readline()
    for _ in range(2):
        job.process.send_signal(signal.SIGINT)
        time.sleep(0.1)
    problems.expect("asked twice", job.end()[0], 130)
    problems.expect("left after that", job.left(), [])
    job = Job("-n", 2, "sleep", 60)
    job.await_pids(2, "sleep", "60")
    job.process.terminate()
    code, _, errors = job.end()
    problems.expect("SIGTERM ends plain tasks without words", (code, errors), (143, ""))


# A child in a session of its own, too.
TREE = "setsid sleep 61 & sleep 61 & sleep 61"


def check_kills():
    for victim in ("run", "outer", "inner", "both", "task"):
        job = Job("-n", 2, "sh", "-c", TREE)
        job.await_pids(6, "sleep", "61")
        daemons = job.pids("dse", "daemon")
        problems.expect("a daemon is two processes", len(daemons), 2)
        killed = {"run": [job.process.pid], "outer": daemons[:1], "inner": daemons[1:], "both": daemons,
                  "task": job.pids("sh", "-c", TREE)[:1]}[victim]
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        code, _, errors = job.end()
        problems.expect(f"kill -9 of {victim}", code, -9 if victim == "run" else 137)
        if victim != "run":
            problems.contains(f"kill -9 of {victim}", errors, "killed by signal 9" if victim == "task" else "its daemon is lost")
        if victim == "both":  # nobody is left who could end what the tasks have started
            for pid in job.pids("sleep", "61"):
                os.kill(pid, signal.SIGKILL)
        problems.expect(f"left after kill -9 of {victim}", job.left(), [])
    job = Job("-n", 2, "sh", "-c", "setsid sleep 62 & exit 0")
    problems.expect("tasks that leave something behind", job.end()[0], 0)
    problems.expect("left by tasks", job.left(), [])
    job = Job("sleep", 63)
    pid = job.await_pids(1, "sleep", "63")[0]
    os.kill(pid, signal.SIGSTOP)
    for _ in range(2):  # the second time it means the job
        job.process.terminate()
        time.sleep(0.1)
    problems.expect("a stopped task", job.end()[0], 143)
    problems.expect("left of a stopped task", job.left(), [])


def check_idle():
    job = Job("-n", 2, "sleep", 64)
    job.await_pids(2, "sleep", "64")
    watched = job.pids("dse", "daemon") + [job.process.pid]
    ticks = lambda: [sum(map(int, pathlib.Path(f"/proc/{pid}/stat").read_text().split()[13:15])) for pid in watched]
    before = ticks()
    time.sleep(0.5)
    problems.expect("processor time of an idle job", ticks(), before)
    job.process.terminate()
    job.end()


def check_refusals():
    def refused(text, *arguments):
        code, _, errors = run(*arguments)
        problems.expect(f"{arguments}", code, 2)
        problems.contains(f"{arguments}", errors, text)

    refused("it has 8 tasks, and the job 3", "-n", 3, "--topology", "torus:4x2", "true")
    refused("it is ring, mesh, torus or hypercube", "--topology", "tree", "true")
    refused("reading the graph nowhere", "--topology", "graph:nowhere", "true")
    pathlib.Path("graph").write_text("0 next=1\n1 next\n")
    refused("graph, line 2: 'next' is no neighbor", "--topology", "graph:graph", "true")
    pathlib.Path("hosts").write_text("localhost slots=2\nb slots=x\n")
    refused("hosts, line 2: 'slots=x'", "-f", "hosts", "true")
    pathlib.Path("hosts").write_text("localhost slots=2\n")
    refused("the hosts have 2 slots", "-f", "hosts", "-n", 3, "true")
    refused("cannot be read", "-f", "nowhere", "true")
    refused("the job has the tasks 0 to 1", "-n", 2, "--stdin", 2, "true")
    refused("no program was named", "-n", 2)
    pathlib.Path("hosts").write_text("localhost slots=1\nnowhere.invalid slots=1\n")
    refused("host nowhere.invalid: its daemon has not started", "-f", "hosts", "-n", 2, "--ssh", "false", "true")
    silent = pathlib.Path("silent").absolute()
    silent.write_text("#!/bin/sh\nexec sleep 68\n")
    silent.chmod(0o755)
    code, _, errors = run("-f", "hosts", "-n", 2, "--ssh", silent, "true", environment={"SHIMA_DSE_TIMEOUT": "1"})
    problems.expect("a silent host", code, 2)
    problems.contains("a silent host", errors, "host nowhere.invalid: no daemon has answered within 1 s")
    daemon = subprocess.run([SHIMA, "dse", "daemon"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    problems.expect("a daemon alone", daemon.returncode, 2)
    problems.contains("a daemon alone", daemon.stderr, "it alone starts daemons")


def check_show():
    code, output, _ = run("--show", "--topology", "torus:2x2", "--bind", "core", "not-started")
    lines = output.splitlines()
    problems.expect("--show", (code, lines[0]), (0, "topology torus:2x2: 4 pairs of neighbors, of which 0 on different hosts"))
    problems.expect("neighbors", [line.split(";")[1] for line in lines[2:]],
                    [" north=2 south=2 west=1 east=1", " north=3 south=3 west=0 east=0", " north=0 south=0 west=3 east=3", " north=1 south=1 west=2 east=2"])
    spread = run("--show", "-n", 2, "x", environment={"HWLOC_SYNTHETIC": "pack:2 core:1 pu:1"})[1]
    if {0, 1} <= os.sched_getaffinity(0):
        problems.contains("hwloc's packages", spread, "task 1: package 1, core 1, cpus 1")
    problems.contains("--verbose", run("-n", 2, "--verbose", "true")[2], "task 1: process ")


def check_libraries():
    compile_program("tests/lapi/transfers.c", "transfers", "-llapi")
    compile_program("tests/dse/topology.c", "topology", "-lshima-dse", "-llapi")
    pathlib.Path("star").write_text("0 a=1 b=2 c=3 d=4 e=5\n" + "".join(f"{i} center=0\n" for i in range(1, 6)))
    problems.expect("LAPI's transfers", run("-n", 3, "./transfers")[::2], (0, ""))
    problems.expect("topologies", run("--topology", "torus:3x2", "./topology"), (0, "", ""))
    problems.expect("a lost task", run("--topology", "torus:3x2", "./topology", "lost")[:2], (0, ""))
    problems.expect("no task", subprocess.run(["./topology", "alone"], timeout=60).returncode, 0)
    exported = subprocess.run(["nm", "-D", "--defined-only", f"{LIBRARIES}/libshima-dse.so"], capture_output=True, text=True, check=True)
    names = {line.split()[2].split("@")[0] for line in exported.stdout.splitlines()}
    problems.expect("symbols that are not of the interface", sorted(name for name in names if not name.startswith(("dse_", "SHIMA_DSE_0"))), [])
    for language, standard in (("c", "c11"), ("c++", "c++17")):
        subprocess.run(["cc", "-x", language, f"-std={standard}", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-fsyntax-only",
                        f"{SOURCES}/include/shima/dse.h"], check=True)


PYTHON = """
from shima import dse
me = dse.task()
assert dse.tasks() == 4 and dse.topology() == "mesh:2x2", dse.topology()
assert dse.neighbor("east") == (me + 1 if me % 2 == 0 else None)
assert dse.neighbor("south", of=0) == 2
assert dse.neighbors(0) == {"south": 2, "east": 1}, dse.neighbors(0)
assert dse.coordinates() == (me // 2, me % 2)
dse.set_topology("ring")
assert dse.neighbors() == {"left": (me + 3) % 4, "right": (me + 1) % 4}
try:
    dse.set_topology("ring" if me else "mesh")
    raise SystemExit("different topologies")
except dse.Error as error:
    assert error.code == -4, error.code
"""


def check_python():
    if SANITIZE:
        return  # python3 is not built with the sanitizer
    environment = {"PYTHONPATH": f"{SOURCES}/python", "LD_LIBRARY_PATH": LIBRARIES, "PYTHONDONTWRITEBYTECODE": "1"}
    problems.expect("Python", run("--topology", "mesh:2x2", "/usr/bin/python3", "-c", PYTHON, environment=environment), (0, "", ""))


def main():
    for check in (check_exit_codes, check_streams, check_environment, check_signals, check_kills, check_idle, check_refusals, check_show, check_libraries,
                  check_python):
        started = time.monotonic()
        check()
        print(f"{check.__name__}: {time.monotonic() - started:.1f} s", flush=True)
    return problems.result()


if __name__ == "__main__":
    sys.exit(main())
