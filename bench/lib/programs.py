"""The benchmark's programs: their sources, and compiling them at the first use.

A program with MPI is compiled with the stock compiler wrapper of the MPI it is measured with, the others with
the system's compiler. It is compiled again if its sources or the command change.
"""

import hashlib
import os
import platform
import subprocess
import sys

from lib import places

SOURCES = {
    "columns": ["examples/columns.c"],
    "steps": ["examples/steps.cpp"],
    "subgroup": ["examples/subgroup.c"],
    "subarray": ["bench/mpi/subarray.c", "bench/mpi/measure.h"],
    "random_patterns": ["bench/mpi/random_patterns.c", "bench/mpi/random_types.c", "bench/mpi/measure.h",
                        "bench/mpi/random_patterns.h"],
    "small_costs": ["bench/mpi/small_costs.c", "bench/mpi/measure.h"],
    "traced": ["bench/mpi/traced.c", "bench/mpi/measure.h"],
    "memory_places": ["bench/mpi/memory_places.c", "bench/mpi/measure.h"],
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
    "lapi_calls": ["bench/dsm/lapi_calls.c"],
    "between_hosts_lapi": ["bench/dsm/between_hosts_lapi.c", "bench/dsm/between_hosts.h"],
    "between_hosts_mpi": ["bench/dsm/between_hosts_mpi.c", "bench/dsm/between_hosts.h"],
}
PVAS = ["-lshima-pvas"]
LINKED = {"delegate_net": [*PVAS, "-lshima-delegate-{family}"]}  # programs with MPI and libraries of Shima
PLAIN = {  # programs without MPI: their libraries
    "limit": [], "warm_memory": [], "tcp_copy": [], "list_io": ["-luring"], "pff_list": ["-lshima-pff"],
    "iod_small": ["-lshima-pff"],
    "delegate": PVAS, "delegate_net_task": PVAS, "task_copy": PVAS, "many_tasks": PVAS,
    "delegated_overlap": PVAS, "dsm_calls": ["-lshima-dsm"], "lapi_calls": ["-llapi"],
    "between_hosts_lapi": ["-llapi"],
    "dsm_ucx": ["-lucp", "-lucs"],
}
HEADERS = {"dsm_ucx": "/usr/include/ucp/api/ucp.h"}  # without them, a program is left out
compiled = set()


def can_be_compiled(program):
    return program not in HEADERS or os.path.exists(HEADERS[program])


def path_of(program, flavour=None):
    return places.programs / (flavour.identity() if flavour else "plain") / program


def binary(program, flavour=None):
    """The path of a program, which is compiled if necessary."""
    target = path_of(program, flavour)
    if target not in compiled:
        compile_program(program, flavour)
        compiled.add(target)
    return target


def libraries_of(program, flavour):
    names = [*PLAIN.get(program, []), *(name.format(family=flavour.family) for name in LINKED.get(program, []))]
    if not any("shima" in name or "lapi" in name for name in names):
        return names
    directory = places.libraries()
    return [f"-I{places.headers()}", f"-L{directory}", f"-Wl,-rpath,{directory}", *names]


def compile_command(program, flavour):
    sources = [places.ROOT / name for name in SOURCES[program] if not name.endswith(".h")]
    cxx = sources[0].suffix == ".cpp"
    if flavour:
        compiler = [flavour.mpicxx if cxx else flavour.mpicc]
    else:
        compiler = [os.environ.get("CXX", "c++") if cxx else os.environ.get("CC", "cc"), "-pthread"]
    standard = "-std=c++17" if cxx else "-std=c11"
    optimize = ["-O3", "-march=native"]  # otherwise a program's own work hides its I/O
    return [*compiler, standard, *optimize, "-o", str(path_of(program, flavour)), *map(str, sources),
            *libraries_of(program, flavour)]


def stamp_of(program, command):
    """What a compiled program depends on. Its directory may be shared by machines with other processors."""
    digest = hashlib.sha256()
    for name in SOURCES[program]:
        digest.update((places.ROOT / name).read_bytes())
    return f"{' '.join(command)}\n{digest.hexdigest()}\n{platform.node()}\n"


def compile_program(program, flavour=None):
    target = path_of(program, flavour)
    command = compile_command(program, flavour)
    maker, stamp = target.with_suffix(".command"), stamp_of(program, command)
    if target.exists() and maker.exists() and maker.read_text() == stamp:
        return
    print(f"compiling {program} with {command[0]}", file=sys.stderr, flush=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    made = target.with_suffix(f".{os.getpid()}")  # another run may compile the same
    try:
        done = subprocess.run([str(made) if word == str(target) else word for word in command], env=flavour.environment() if flavour else None, capture_output=True, text=True)
        problem = done.stderr if done.returncode else ""
    except OSError as error:
        problem = str(error)
    if problem:
        sys.exit(f"cannot compile {program}: {' '.join(command)}\n{problem}")
    made.rename(target)
    maker.write_text(stamp)
