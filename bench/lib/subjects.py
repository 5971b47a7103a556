"""The subjects of measurements: the stock MPIs found on this machine, and Shima under each.

A Flavour is one installed MPI with its compilers and launcher. The environments that scripts/setup
creates come first; the distribution's packages are used where those are missing. A Subject is a way
to start a program: with a flavour alone, or the same flavour's program under Shima.
"""

import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = ROOT / "build/release/bin/shima"
FAMILIES = ("mpich", "openmpi")

SOURCES = {
    "columns": ["examples/columns.c"],
    "steps": ["examples/steps.cpp"],
    "subgroup": ["examples/subgroup.c"],
    "subarray": ["bench/mpi/subarray.c", "bench/mpi/measure.h"],
    "random_patterns": ["bench/mpi/random_patterns.c", "bench/mpi/random_types.c", "bench/mpi/measure.h",
                        "bench/mpi/random_patterns.h"],
    "small_costs": ["bench/mpi/small_costs.c", "bench/mpi/measure.h"],
    "waitall": ["bench/mpi/waitall.c", "bench/mpi/measure.h"],
    "irregular": ["bench/mpi/irregular.c", "bench/mpi/irregular.h", "bench/mpi/measure.h"],
    "irregular_by_hand": ["bench/mpi/irregular_by_hand.c", "bench/mpi/irregular.h", "bench/mpi/measure.h"],
    "strided_read": ["bench/mpi/strided_read.c", "bench/mpi/measure.h"],
    "overlap": ["bench/mpi/overlap.c", "bench/mpi/measure.h"],
    "model_cells": ["bench/mpi/model_cells.c", "bench/mpi/measure.h"],
    "chooser_cells": ["bench/mpi/chooser_cells.c", "bench/mpi/measure.h"],
    "limit": ["bench/machine/limit.cpp"],
    "warm_memory": ["bench/machine/warm_memory.cpp"],
    "tcp_copy": ["bench/machine/tcp_copy.cpp"],
    "list_io": ["bench/files/list_io.cpp"],
    "pff_list": ["bench/files/pff_list.c"],
    "iod_small": ["bench/files/iod_small.c"],
    "delegate": ["bench/tasks/delegate.c", "bench/tasks/tasks.h"],
    "delegate_net": ["bench/tasks/delegate_net.c", "bench/tasks/delegate_net.h", "bench/tasks/tasks.h"],
    "delegate_net_task": ["bench/tasks/delegate_net_task.c", "bench/tasks/delegate_net.h", "bench/tasks/tasks.h"],
    "delegated_overlap": ["bench/tasks/delegated_overlap.c", "bench/tasks/tasks.h"],
    "task_copy": ["bench/tasks/task_copy.c", "bench/tasks/tasks.h"],
    "many_tasks": ["bench/tasks/many_tasks.c", "bench/tasks/tasks.h"],
    "dsm_calls": ["bench/dsm/dsm_calls.c", "bench/dsm/cells.h"],
    "dsm_mpi": ["bench/dsm/dsm_mpi.c", "bench/dsm/cells.h"],
    "dsm_ucx": ["bench/dsm/dsm_ucx.c", "bench/dsm/cells.h"],
    "between_hosts_lapi": ["bench/dsm/between_hosts_lapi.c", "bench/dsm/between_hosts.h"],
    "between_hosts_mpi": ["bench/dsm/between_hosts_mpi.c", "bench/dsm/between_hosts.h"],
}
LIBRARIES = ROOT / "build/release/lib"
PVAS = [f"-I{ROOT}/include", f"-L{LIBRARIES}", f"-Wl,-rpath,{LIBRARIES}", "-lshima-pvas"]
LINKED = {"delegate_net": [*PVAS, "-lshima-delegate-{family}"]}  # programs with MPI and further libraries
PLAIN = {  # programs without MPI: their libraries
    "limit": [], "warm_memory": [], "tcp_copy": [], "list_io": ["-luring"],
    "pff_list": [f"-I{ROOT}/include", f"-L{LIBRARIES}", f"-Wl,-rpath,{LIBRARIES}", "-lshima-pff"],
    "iod_small": [f"-I{ROOT}/include", f"-L{LIBRARIES}", f"-Wl,-rpath,{LIBRARIES}", "-lshima-pff"],
    "delegate": PVAS, "delegate_net_task": PVAS, "task_copy": PVAS, "many_tasks": PVAS,
    "delegated_overlap": PVAS,
    "dsm_calls": [f"-I{ROOT}/include", f"-L{LIBRARIES}", f"-Wl,-rpath,{LIBRARIES}", "-lshima-dsm"],
    "between_hosts_lapi": [f"-I{ROOT}/include", f"-L{LIBRARIES}", f"-Wl,-rpath,{LIBRARIES}", "-llapi"],
    "dsm_ucx": ["-lucp", "-lucs"],
}
HEADERS = {"dsm_ucx": "/usr/include/ucp/api/ucp.h"}  # without them, a program is left out


@dataclasses.dataclass(frozen=True)
class Flavour:
    family: str  # mpich or openmpi
    mpicc: str
    mpicxx: str
    mpiexec: str
    version: str

    def label(self):
        return {"mpich": "MPICH", "openmpi": "Open MPI"}[self.family]

    def launch(self, ranks):
        # Open MPI refuses more ranks than cores without these settings; MPICH does not.
        more = ["--map-by", ":OVERSUBSCRIBE"] if self.family == "openmpi" else []
        return [self.mpiexec, *more, "-n", str(ranks)]

    def environment(self):
        bin_dir = str(pathlib.Path(self.mpiexec).parent)
        changes = {"PATH": bin_dir + os.pathsep + os.environ["PATH"]}
        if self.family == "openmpi":
            changes |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        return dict(os.environ, **changes)


@dataclasses.dataclass(frozen=True)
class Subject:
    name: str
    flavour: Flavour
    shima: bool

    def command(self, ranks, program, arguments, one_space=False):
        run = [str(TOOL), "run", *(["--one-space"] if one_space else []), "-n", str(ranks)]
        start = run if self.shima else self.flavour.launch(ranks)
        return [*start, str(binary(program, self.flavour)), *map(str, arguments)]

    def label(self):
        return f"Shima on {self.flavour.label()}" if self.shima else f"{self.flavour.label()} stock"


def version_of(mpiexec):
    result = subprocess.run([mpiexec, "--version"], capture_output=True, text=True)
    found = re.search(r"(?:Version:|\(Open MPI\)|\(OpenRTE\))\s*(\S+)", result.stdout)
    return found.group(1) if found else "unknown"


def find_flavour(family):
    wheel = ROOT / "build/deps" / family / "bin"
    places = [tuple(str(wheel / tool) for tool in ("mpicc", "mpicxx", "mpiexec")),
              tuple(shutil.which(f"{tool}.{family}") for tool in ("mpicc", "mpicxx", "mpiexec"))]
    for mpicc, mpicxx, mpiexec in places:
        if mpiexec and mpicc and os.access(mpiexec, os.X_OK) and os.access(mpicc, os.X_OK):
            return Flavour(family, mpicc, mpicxx, mpiexec, version_of(mpiexec))
    return None


def find_flavours():
    flavours = [flavour for flavour in map(find_flavour, FAMILIES) if flavour]
    for family in set(FAMILIES) - {flavour.family for flavour in flavours}:
        print(f"no {family} found: its columns stay empty (scripts/setup installs it)", file=sys.stderr)
    return flavours


def shima_is_built():
    return os.access(TOOL, os.X_OK)


def find_subjects(flavours, with_shima=True):
    subjects = [Subject(flavour.family, flavour, False) for flavour in flavours]
    if with_shima and shima_is_built():
        subjects += [Subject("shima/" + flavour.family, flavour, True) for flavour in flavours]
    return subjects


# --- compiling --------------------------------------------------------------------------------

def binary(program, flavour=None):
    return ROOT / "build/bench" / (flavour.family if flavour else "plain") / program


def can_be_compiled(program):
    return program not in HEADERS or os.path.exists(HEADERS[program])


def compile_command(program, flavour):
    sources = [ROOT / name for name in SOURCES[program] if not name.endswith(".h")]
    cxx = sources[0].suffix == ".cpp"
    if flavour:
        compiler = [flavour.mpicxx if cxx else flavour.mpicc]
    else:
        compiler = [os.environ.get("CXX", "c++") if cxx else os.environ.get("CC", "cc"), "-pthread"]
    standard = "-std=c++17" if cxx else "-std=c11"
    optimize = ["-O3", "-march=native"]  # otherwise a program's own work hides its I/O
    return [*compiler, standard, *optimize, "-o", str(binary(program, flavour)), *map(str, sources),
            *PLAIN.get(program, []),
            *(option.format(family=flavour.family) for option in LINKED.get(program, []))]


def compile_program(program, flavour=None):
    """Compiles with the stock compiler wrapper, unless the existing program is newer and built by it."""
    target = binary(program, flavour)
    command = compile_command(program, flavour)
    maker = target.with_suffix(".command")
    newest = max((ROOT / name).stat().st_mtime for name in SOURCES[program])
    made_by = maker.read_text() if maker.exists() else ""
    if target.exists() and target.stat().st_mtime > newest and made_by == " ".join(command):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    environment = flavour.environment() if flavour else None
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"cannot compile {program}: {' '.join(command)}\n{result.stderr}")
    maker.write_text(" ".join(command))
