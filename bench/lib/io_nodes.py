"""I/O nodes for experiments: daemons (`shima iod`) that end with the experiment.

    with IoNodes(directory) as nodes:
        nodes.add("127.0.0.1", {"d0": path}, enter=[...])
        run(..., nodes.environment())
"""

import os
import secrets
import signal
import subprocess

from lib.places import TOOL


class NoNode(Exception):
    """A daemon did not start; the message has what it said."""


class IoNodes:
    def __init__(self, directory):
        self.key = directory / "iod.key"
        self.daemons, self.places = [], []

    def __enter__(self):
        self.key.touch(mode=0o600)
        self.key.write_text(secrets.token_hex(32) + "\n")
        return self

    def add(self, address, targets, enter=()):
        """A daemon that serves directories by name; `enter`: the beginning of its command."""
        words = [word for name, path in targets.items() for word in ("--target", f"{name}={path}")]
        daemon = subprocess.Popen([*enter, str(TOOL), "iod", "--listen", f"{address}:0", *words, "--key", str(self.key)],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.daemons.append(daemon)
        told = daemon.stdout.readline()
        if not told:
            raise NoNode(f"an I/O node did not start: {daemon.stderr.read().strip()}")
        port = int(told.rpartition(":")[2])
        self.places += [f"{name}=iod://{address}:{port}/{name}" for name in targets]

    def environment(self):
        return {"SHIMA_IOD_KEY": str(self.key), "SHIMA_TARGETS": ":".join(self.places)}

    def __exit__(self, *_):
        for daemon in self.daemons:
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                os.kill(daemon.pid, signal.SIGKILL)
                daemon.communicate()
        self.key.unlink(missing_ok=True)
