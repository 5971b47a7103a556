"""An I/O node on each of the hosts of two_hosts.py, with one target each, that end with the context."""

import contextlib
import os
import pathlib
import re
import secrets
import subprocess

import two_hosts

PORT = 7100


class IoNode:
    def __init__(self, hosts, host, name, directory, key, tool):
        self.enter, self.name, self.key, self.tool = hosts.enter(host), name, key, tool
        self.directory = pathlib.Path(directory) / f"target-{name}"
        self.directory.mkdir(parents=True, exist_ok=True)
        self.address = f"{two_hosts.ADDRESSES[host]}:{PORT}"
        self.process = subprocess.Popen(
            [*self.enter, str(tool), "iod", "--listen", self.address, "--target", f"{name}={self.directory}", "--key", str(key)],
            stdout=subprocess.PIPE, text=True)
        if not self.process.stdout.readline():
            raise RuntimeError(f"the I/O node at {self.address} did not start")

    def counts(self):
        """What its target has served: bytes read, bytes written, requests, collective calls."""
        status = subprocess.run([*self.enter, str(self.tool), "iod", "--status", self.address, "--key", str(self.key)], check=True,
                                text=True, capture_output=True, timeout=60).stdout
        found = re.search(r"^target .*: (\d+) bytes read, (\d+) bytes written, (\d+) requests, (\d+) collective calls$", status,
                          re.MULTILINE)
        return dict(zip(("read", "written", "requests", "calls"), map(int, found.groups())))


@contextlib.contextmanager
def on_hosts(hosts, directory, tool, names="ab"):
    """The nodes, and the environment in which files are striped over all of them."""
    directory = pathlib.Path(directory)
    key = directory / "iod.key"
    key.touch(mode=0o600)
    key.write_text(secrets.token_hex(32) + "\n")
    nodes = []
    try:
        for host, name in enumerate(names):
            nodes.append(IoNode(hosts, host, name, directory, key, tool))
        yield nodes, {"SHIMA_IOD_KEY": str(key), "SHIMA_NODE_TIMEOUT": os.environ.get("SHIMA_NODE_TIMEOUT", "10"),
                      "SHIMA_TARGETS": ":".join(f"{node.name}=iod://{node.address}/{node.name}" for node in nodes),
                      "STORED_TARGETS": ":".join(f"{node.name}={node.directory}" for node in nodes)}
    finally:
        for node in nodes:
            node.process.kill()
            node.process.communicate()
