#!/usr/bin/env python3
# FLAVOURS: mpich-debian
# TIMEOUT: 300
"""`shima bench` as installed: with the MPI that is in PATH, without a file of the source tree or of the build.

It has the sources of all programs of its experiments, and those that use Shima's libraries are compiled with the
installed ones.
"""

import os
import pathlib
import subprocess
import sys

SOURCE, BUILD = os.environ["SHIMA_SOURCE_DIR"], os.environ["SHIMA_BUILD_DIR"]
PREFIX, HOME = pathlib.Path("prefix").absolute(), pathlib.Path("home").absolute()
BENCH = PREFIX / "share/shima/bench"
# Compiles a program of each kind, and tells which sources are missing.
LOOK = """
import pathlib, sys
sys.path.insert(0, sys.argv[1])
from lib import places, programs, subjects
places.programs = pathlib.Path(sys.argv[2])
flavour = subjects.flavour_of(sys.argv[3])
if sys.argv[4] == "":  # an ordinary program cannot be linked with a sanitized library
    print(programs.binary("dsm_calls"), programs.binary("delegate"), programs.binary("delegate_net", flavour))
for name in ("columns", "steps", "subgroup", "irregular", "irregular_by_hand", "limit", "warm_memory", "delegate", "delegate_net",
             "delegate_net_task", "delegated_overlap", "dsm_calls", "dsm_mpi", "dsm_ucx"):
    for source in programs.SOURCES[name]:
        if not (places.ROOT / source).exists():
            sys.exit(f"{source} of {name} is not installed")
"""


def main():
    subprocess.run(["cmake", "--install", BUILD, "--prefix", PREFIX], check=True, capture_output=True)
    HOME.mkdir()
    clean = {"PATH": "/usr/bin:/bin", "HOME": str(HOME), "SHIMA_BENCH_TOOL": "/nowhere"}
    done = subprocess.run([PREFIX / "bin/shima", "bench", "steps", "--size", "8M", "--np", "2", "--reps", "1", "--mpi", "mpich",
                           "--html", "steps.html"], env=clean, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "shima/mpich" in done.stdout and "np 2 MPI-IO / naive" in done.stdout, done.stdout
    assert pathlib.Path("steps.html").stat().st_size > 3000
    made = list((HOME / ".cache/shima/bench").glob("mpich-*/steps.command"))
    assert len(made) == 1, made
    looked = subprocess.run([sys.executable, "-B", "-c", LOOK, BENCH, "programs", os.environ["MPIEXEC"],
                             os.environ["SHIMA_SANITIZE"]], capture_output=True, text=True,
                            env=clean | {"SHIMA_BENCH_TOOL": str(PREFIX / "bin/shima")})
    assert looked.returncode == 0, looked.stderr
    for stamp in [*made, *pathlib.Path("programs").glob("*/*.command")]:
        compiled = stamp.read_text().splitlines()[0]
        assert f"{SOURCE}/bench" not in compiled and f"{SOURCE}/examples" not in compiled and f"-L{BUILD}/lib" not in compiled, compiled
    for program in looked.stdout.split():
        needed = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
        assert f"{PREFIX}/" in needed and "not found" not in needed, needed
    assert not list(BENCH.rglob("__pycache__"))


if __name__ == "__main__":
    main()
