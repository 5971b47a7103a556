#!/usr/bin/env python3
# FLAVOURS: none
# TIMEOUT: 240
"""Jobs under a real Slurm of two nodes (slurm_lib.py): `shima dse run` in an allocation, and `shima run --lapi srun`.

Programs, streams and exit codes; jobs beside and inside other steps of the allocation; what kills a job and leaves no
process behind; and the secrets, which are neither among the arguments of a process nor in a file of Slurm.
"""

import os
import pathlib
import re
import signal
import sys
import time

from dse_lib import Job, Problems, SHIMA, SOURCES, compile_program
sys.path.insert(0, os.path.join(SOURCES, "tests"))
from slurm_lib import Slurm, Unavailable

problems = Problems()
KNOWN_WITHIN_S = 1.0
KILLED = (137, 143)  # Slurm sends SIGTERM to the processes of a step, and SIGKILL


class Jobs:
    """How jobs start in an allocation, on its first host."""

    def __init__(self, slurm, allocation):
        self.slurm, self.allocation = slurm, allocation

    def start(self, *arguments, environment=None, before=(), **options):
        return Job(*arguments, prefix=self.slurm.command(*before), environment={**self.allocation.environment, **(environment or {})}, **options)

    def run(self, *arguments, **options):
        return self.start(*arguments, **options).end()

    def steps(self):
        """Of programs: an interactive shell is one, too."""
        return re.findall(r"^\d+\.\d+$", self.slurm.run("squeue", "-h", "-s", "-j", self.allocation.job, "-o", "%i")[1], re.M)


def hosts_of(output):
    return sorted(output.split())


HALVES = ["shima-a", "shima-a", "shima-b", "shima-b"]


def check_slurm(jobs):
    code, output, errors = jobs.allocation.run("srun", "-N2", "-n4", "hostname")
    problems.expect("srun hostname", (code, hosts_of(output), errors), (0, HALVES, ""))
    print(jobs.slurm.run("srun", "--version")[1].strip(), flush=True)


def check_programs(jobs):
    code, output, errors = jobs.run("-n", 4, "--tag", "sh", "-c", "echo $(hostname) $SHIMA_DSE_HOST ${SLURM_PROCID-none}; exit $((SHIMA_DSE_TASK == 3 ? 9 : 0))")
    lines = [f"[{i}] {name} {name} none" for i, name in enumerate(HALVES)]
    problems.expect("tasks of both nodes", (code, sorted(output.splitlines()), errors), (9, lines, ""))
    problems.expect("input", jobs.start("-n", 4, "--stdin", 3, "cat", stdin=-1).end("x" * 300_000)[:2], (0, "x" * 300_000))
    compile_program("examples/dse_stencil.c", "stencil", "-lshima-dse", "-lshima-dsm", "-lm")
    problems.expect("the stencil", jobs.run("--topology", "torus:2x2", "./stencil"), (0, "torus:2x2: 200 steps, heat 1000.000000\n", ""))
    problems.expect("LAPI", jobs.run("-n", 4, "./messages")[0], 0)
    shown = jobs.run("--show", "--topology", "mesh:2x2", "x")[1].splitlines()[0]
    problems.expect("--show", shown, "topology mesh:2x2: 4 pairs of neighbors, of which 2 on different hosts")
    # What the options of sbatch leave in the environment, for srun.
    for setting in ("SLURM_HINT=nomultithread", "SLURM_NTASKS_PER_NODE=2", "SLURM_CPU_BIND=rank", "SLURM_STDINMODE=none"):
        code, output, errors = jobs.run("-n", 4, "hostname", environment=dict([setting.split("=")]))
        problems.expect(setting, (code, hosts_of(output), errors), (0, HALVES, ""))
    # The daemons must have the settings of Shima.
    job = jobs.start("-n", 4, "sleep", 60, environment={"SLURM_EXPORT_ENV": "NONE"})
    job.await_pids(4, "sleep", "60")
    problems.expect("daemons with the environment of the job", len(job.pids("dse", "daemon")), 4)
    job.process.terminate()
    problems.expect("SIGTERM", job.end()[0], 143)
    job = jobs.start("-n", 4, "sh", "-c", "trap 'exit 5' USR1; echo ready; while :; do sleep 0.05; done")
    for _ in range(4):
        job.process.stdout.readline()
    job.process.send_signal(signal.SIGUSR1)
    problems.expect("SIGUSR1", job.end()[0], 5)


def check_other_steps(jobs):
    """A step usually has all processors of its allocation, so that another one would wait for its end."""
    other = jobs.start("-n", 4, "sleep", 60)
    other.await_pids(4, "sleep", "60")
    beside = jobs.run("-n", 4, "hostname")
    problems.expect("beside another job", (beside[0], hosts_of(beside[1]), beside[2]), (0, HALVES, ""))
    other.process.terminate()
    problems.expect("the other job", other.end()[0], 143)
    inside = jobs.run("-n", 4, "hostname", before=["srun", "-N1", "-n1"])
    problems.expect("inside a step", (inside[0], hosts_of(inside[1])), (0, HALVES))
    # So does `srun` with one of its own tasks, as the shell that `srun --pty` starts.
    step = jobs.start("-n", 4, "hostname", before=["srun", "-N2", "-n2", "sh", "-c", '[ "$SLURM_PROCID" = 1 ] && exec sleep 1; exec "$@"', "sh"])
    code, output, _ = step.end()
    problems.expect("beside a task of its step", (code, hosts_of(output)), (0, HALVES))


def check_kills(jobs, victims=("run", "step")):
    far_network = os.readlink(f"/proc/{jobs.slurm.hosts.holders[1].pid}/ns/net")
    is_far = lambda pid: os.readlink(f"/proc/{pid}/ns/net") == far_network
    for victim in victims:
        job = jobs.start("-n", 4, "sh", "-c", "setsid sleep 61 & exec sleep 62")
        tasks = job.await_pids(4, "sleep", "62")
        job.await_pids(4, "sleep", "61")
        if victim == "step":
            code, _, errors = jobs.slurm.run("scancel", *jobs.steps())
            problems.expect("scancel of the step", (code, errors), (0, ""))
        else:
            commands = {pid: words[0] for pid, words in job.processes().items()}
            killed = {"run": [job.process.pid], "daemon": [pid for pid in job.pids("dse", "daemon") if is_far(pid)][-1:],
                      "task": [pid for pid in tasks if is_far(pid)][:1], "srun": [pid for pid, name in commands.items() if name == "srun"]}[victim]
            for pid in killed:
                os.kill(pid, signal.SIGKILL)
        if victim == "srun":  # Slurm may end its step; otherwise the job goes on
            time.sleep(0.3)
            job.process.terminate()
        code, _, errors = job.end()
        print(f"{victim} is killed: {code}, {errors.splitlines()}", flush=True)
        problems.expect(f"kill of the {victim}: {code}", code in ([-9] if victim == "run" else KILLED), True)
        problems.expect(f"left after the kill of the {victim}", job.left(), [])


EVERYTHING_OF_LAPI = ((2, "transfers"), (4, "transfers"), (3, "progress"), (2, "terms"), (4, "queue"))


def check_lapi(jobs, programs=((4, "messages"),), losses=((3, "waiting"),)):
    launch = lambda tasks, *program: jobs.allocation.run(SHIMA, "run", "--lapi", "srun", "-N2", f"-n{tasks}", *program)
    for tasks, program in programs:
        code, output, errors = launch(tasks, f"./{program}")
        problems.expect(f"{program}, {tasks} tasks: {output[-2000:]}{errors[-2000:]}", code, 0)
    for tasks, where in losses:
        code, output, errors = launch(tasks, "sh", "-c", f"./loss {where}; exit 0")
        times = [float(text) for text in re.findall(r"known after ([0-9.]+) s", output + errors)]
        print(f"loss {where}, {tasks} tasks: known after {times} s", flush=True)
        problems.expect(f"loss {where}: {output[-2000:]}{errors[-2000:]}", (code, (output + errors).count("survives")), (0, tasks - 1))
        problems.expect(f"loss {where}: known late", [time for time in times if time > KNOWN_WITHIN_S], [])


def places_of(secret, directory):
    """The arguments of processes and the files below a directory that have it."""
    found = []
    for path in [*pathlib.Path("/proc").glob("[0-9]*/cmdline"), *(path for path in directory.rglob("*") if path.is_file())]:
        try:
            if secret.encode() in path.read_bytes():
                found.append(str(path))
        except OSError:
            pass  # it exited meanwhile
    return found


def check_secrets(jobs):
    """A task of LAPI knows the secret of its job."""
    script = 'echo "${SHIMA_LAPI##*key=}" >secret.$SLURM_PROCID && exec sleep 63'
    for secret in pathlib.Path().glob("secret.*"):
        secret.unlink()
    job = jobs.start("-n", 1, "true", before=[SHIMA, "run", "--lapi", "srun", "-N2", "-n2", "sh", "-c", script])
    job.await_pids(2, "sleep", "63")
    secrets = {path.read_text().strip() for path in pathlib.Path().glob("secret.*")}
    problems.expect("secrets of one job", [len(secret) >= 32 for secret in secrets], [True])
    for secret in secrets:
        problems.expect("the secret among arguments or in files", places_of(secret, jobs.slurm.directory), [])
    job.process.terminate()
    job.end()
    problems.expect("left after the job of LAPI", job.left(), [])


def check_end_of_allocation(slurm, how):
    with slurm.allocate() as allocation:
        job = Jobs(slurm, allocation).start("-n", 4, "sh", "-c", "setsid sleep 61 & exec sleep 62")
        job.await_pids(4, "sleep", "62")
        if how == "scancel":
            slurm.run("scancel", allocation.job)
        else:
            allocation.process.stdin.close()  # its shell ends
        code, _, errors = job.end()
        print(f"the allocation ends by {how}: {code}, {errors.splitlines()}", flush=True)
        problems.expect(f"a job whose allocation ends by {how}: {code}", code in KILLED, True)
        problems.expect(f"left after the end of the allocation by {how}", job.left(), [])


def timed(check, *arguments):
    started = time.monotonic()
    check(*arguments)
    print(f"{check.__name__}: {time.monotonic() - started:.1f} s", flush=True)


def everyday(slurm):
    for name in ("messages", "loss"):
        compile_program(f"tests/lapi/{name}.c", name, "-llapi")
    with slurm.allocate() as allocation:
        for check in (check_slurm, check_programs, check_other_steps, check_kills, check_lapi, check_secrets):
            timed(check, Jobs(slurm, allocation))
    timed(check_end_of_allocation, slurm, "exit")


def everything(slurm):
    """What the everyday test leaves out."""
    compile_program("examples/lapi_task_queue.c", "queue", "-llapi")
    for name in ("transfers", "progress", "terms", "loss"):
        compile_program(f"tests/lapi/{name}.c", name, "-llapi")
    with slurm.allocate() as allocation:
        jobs = Jobs(slurm, allocation)
        for _ in range(10):
            timed(check_kills, jobs, ("run", "daemon", "task", "step", "srun"))
        timed(check_lapi, jobs, EVERYTHING_OF_LAPI, [(tasks, where) for tasks in (2, 3, 4) for where in ("handler", "waiting", "sending")])
    for _ in range(5):
        for how in ("scancel", "exit"):
            timed(check_end_of_allocation, slurm, how)


def main(problems_on=everyday):
    started = time.monotonic()
    try:
        with Slurm() as slurm:
            print(f"Slurm has started: {time.monotonic() - started:.1f} s", flush=True)
            problems_on(slurm)
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return 77
    return problems.result()


if __name__ == "__main__":
    sys.exit(main())
