#!/usr/bin/env python3
# FLAVOURS: mpich-wheel
# TIMEOUT: 180
# PROCESSORS: 2
"""Creating, deleting and resizing files by MPI in a directory of an I/O node has the results that it has in a local one.

By the directory's place, by a path that is mapped to it, and in a local directory. A node that has ended is an I/O error.
"""

import os
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(os.environ["SHIMA_SOURCE_DIR"])
sys.path.insert(0, str(SOURCE / "tests"))
from iod_lib import SHIMA, nodes

os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                  PRTE_MCA_rmaps_default_mapping_policy=":oversubscribe")


def job(directory, *options):
    return subprocess.run([SHIMA, "run", "-n", "3", "--mpiexec", os.environ["MPIEXEC"], *options, "./iod_names", directory],
                          capture_output=True, text=True, timeout=60, check=False)


subprocess.run([os.environ["MPICC"], "-std=gnu11", "-O1", "-o", "iod_names", SOURCE / "tests/mpi/iod_names.c"], check=True)
with nodes("ab") as running:
    pathlib.Path("local").mkdir()
    for words in (["local"], [running[0].path()], ["/nowhere/run", "--map", f"/nowhere={running[0].path()}", "--map",
                                                   f"/nowhere/run={running[0].path('sub')}"]):
        (running[0].files / "sub").mkdir(exist_ok=True)
        ended = job(*words)
        assert ended.returncode == 0 and "all names are good" in ended.stdout, (words, ended.stdout[-3000:], ended.stderr[-3000:])
    left = [path.name for path in running[0].files.glob("*") if path.name not in (".shima", "sub")]
    assert not left, left
    running[0].end("kill")
    # Without a launcher, which may lose what a rank says before it ends the job.
    ended = subprocess.run([SHIMA, "exec", "./iod_names", running[0].path()], capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode != 0 and "is it running?" in ended.stderr + ended.stdout, (ended.stdout, ended.stderr)
