#!/usr/bin/env python3
# FLAVOURS: mpich-wheel
# TIMEOUT: 240
# PROCESSORS: 2
"""Two hosts that share no directory run an unmodified MPI program on one striped file.

Each host has an I/O node, whose directories the other host cannot see: the first keeps the master files, and both have a
target. The program of the paper, columns.c, knows a path that exists on no host. It checks what it reads.
"""

import os
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(os.environ["SHIMA_SOURCE_DIR"])
sys.path[:0] = [str(SOURCE / "tests"), str(SOURCE / "bench")]
import two_hosts
from iod_lib import KEY, SHIMA, make_key
from two_hosts import TwoHosts, Unavailable

MPIEXEC, MPICC = os.environ["MPIEXEC"], os.environ["MPICC"]
PORT = 7000


def start_node(hosts, host, target):
    """With directories on a file system that only this host has."""
    disk = pathlib.Path("disk").absolute()
    disk.mkdir(exist_ok=True)
    hosts.call(host, ["mount", "-t", "tmpfs", "tmpfs", str(disk)])
    hosts.call(host, ["mkdir", f"{disk}/target", f"{disk}/files"])
    node = subprocess.Popen(hosts.enter(host) + [SHIMA, "iod", "--listen", f":{PORT}", "--target", f"{target}={disk}/target",
                                                 "--directory", f"run={disk}/files", "--key", str(KEY)], stdout=subprocess.PIPE, text=True)
    assert "serving" in node.stdout.readline()
    return node


def main():
    subprocess.run([MPICC, "-std=c11", "-O1", "-o", "columns", SOURCE / "examples" / "columns.c"], check=True)
    make_key()
    place = f"iod://{two_hosts.NAMES[0]}:{PORT}/run"
    settings = {"SHIMA_IOD_KEY": str(KEY), "SHIMA_PATHS": f"/nowhere/run={place}",
                "SHIMA_TARGETS": ":".join(f"{target}=iod://{name}:{PORT}/{target}" for target, name in zip("ab", two_hosts.NAMES))}
    with TwoHosts() as hosts:
        started = [start_node(hosts, host, target) for host, target in enumerate("ab")]
        setting_words = ["env", *(f"{key}={value}" for key, value in settings.items())]
        job = hosts.run_mpi(MPIEXEC, 4, [*setting_words, SHIMA, "exec", "--hint", "striping_factor=2", "--hint", "striping_unit=65536",
                                         str(pathlib.Path("columns").absolute()), "--size-mib", "4", "--piece", "16384",
                                         "--file", "/nowhere/run/columns.data"],
                            capture_output=True, text=True, timeout=150)
        if job.returncode != 0 or "COL read" not in job.stdout:
            sys.exit(f"exit status {job.returncode}: {job.stdout}{job.stderr}")
        seen = subprocess.run(hosts.enter(1) + [*setting_words, SHIMA, "stat", "--json", "/nowhere/run/columns.data"], check=True,
                              capture_output=True, text=True, timeout=60).stdout
        assert '"size": 4194304' in seen and '"target": "b"' in seen, seen
        subprocess.run(hosts.enter(1) + [*setting_words, SHIMA, "rm", "/nowhere/run/columns.data"], check=True, timeout=60)
        for host in range(2):
            left = subprocess.run(hosts.enter(host) + ["find", f"{os.getcwd()}/disk", "-type", "f"], check=True, capture_output=True, text=True).stdout
            assert sorted(os.path.basename(name) for name in left.split()) in ([".shima-target"], [".lock", ".shima-target"]), left
        for node in started:
            node.terminate()
            assert node.wait(60) == 0


try:
    main()
except Unavailable as reason:
    print(f"skipped: {reason}")
    sys.exit(two_hosts.SKIP)
