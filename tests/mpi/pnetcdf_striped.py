#!/usr/bin/env python3
# FLAVOURS: openmpi-debian
"""PnetCDF, from its shared library and linked statically, opens and creates striped files that exist.

On local targets, over two I/O nodes, and in the directory of a node. A file that is created again keeps its layout, and leaves no
parts without a file. Calls of the program that are not PnetCDF's see the text of the master file.
"""

import os
import pathlib
import subprocess
import sys

SOURCES = pathlib.Path(os.environ["SHIMA_SOURCE_DIR"])
sys.path.insert(0, str(SOURCES / "tests"))
from iod_lib import SHIMA, STRIPE, nodes

SKIP, LIMIT_S = 77, 60
LIBRARIES = pathlib.Path("/usr/lib", os.uname().machine + "-linux-gnu")
PROGRAMS = {"shared": ["-lpnetcdf"], "static": [LIBRARIES / "libpnetcdf.a", "-lm"]}


def run(ranks, program, *arguments, hints=STRIPE):
    command = [SHIMA, "run", "-n", str(ranks), "--mpiexec", os.environ["MPIEXEC"], *hints, f"./{program}", *map(str, arguments)]
    done = subprocess.run(command, text=True, capture_output=True, timeout=LIMIT_S, check=False)
    if done.returncode != 0:
        sys.exit(f"{command}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def shima(*words):
    return subprocess.run([SHIMA, *words], check=True, text=True, capture_output=True, timeout=LIMIT_S).stdout


def check(program, path, *directories):
    """`directories`: those of the targets."""
    run(3, program, "again", path)
    facts = shima("stat", path)
    assert "unit 5000 over a b" in facts, facts
    parts = sorted(part.name for directory in directories for part in pathlib.Path(directory).iterdir())
    assert len([part for part in parts if not part.startswith(".")]) == 4, parts  # a subfile and a copy on each target
    run(3, program, "read", path, hints=[])


def check_text(program, path):
    text = run(1, program, "text", path)
    assert text.startswith("shima striped file"), text


def check_local():
    targets = {"a": "local-a", "b": "local-b"}
    for directory in targets.values():
        os.mkdir(directory)
    os.environ["SHIMA_TARGETS"] = ":".join(f"{name}={os.path.abspath(place)}" for name, place in targets.items())
    for program in PROGRAMS:
        check(program, "x.nc", *targets.values())
        if program == "static":
            check_text(program, "x.nc")
        shima("rm", "x.nc")


def check_nodes():
    with nodes("ab") as running:
        directories = [node.directory for node in running]
        check("shared", "x.nc", *directories)
        shima("rm", "x.nc")
        check("static", running[0].path("x.nc"), *directories)
        ends = [node.end() for node in running]
        assert ends == [(0, "")] * 2, ends


def main():
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1")
    if not (LIBRARIES / "libpnetcdf.a").exists():
        print("skipped: no libpnetcdf-dev")
        return SKIP
    for program, libraries in PROGRAMS.items():
        subprocess.run([os.environ["MPICC"], "-std=gnu11", "-O1", "-Wall", "-o", program, SOURCES / "tests/mpi/pnetcdf.c", *libraries],
                       check=True)
    check_local()
    check_nodes()
    return 0


if __name__ == "__main__":
    sys.exit(main())
