"""I/O nodes for tests of the command: daemons on loopback, each with one target, that end with the test."""

import contextlib
import os
import pathlib
import secrets
import subprocess

SHIMA = os.environ["SHIMA"]
KEY = pathlib.Path("iod.key").absolute()


def make_key(path=KEY):
    path.touch(mode=0o600)
    path.write_text(secrets.token_hex(32) + "\n")
    return path


class Node:
    def __init__(self, name, port=0, environment=None):
        self.name, self.directory = name, pathlib.Path(f"target-{name}").absolute()
        self.directory.mkdir(exist_ok=True)
        self.port = port
        self.start(environment)

    def start(self, environment=None):
        """At the port that it had before."""
        self.process = subprocess.Popen(
            [SHIMA, "iod", "--listen", f"127.0.0.1:{self.port}", "--target", f"{self.name}={self.directory}", "--key", KEY],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ, **(environment or {})))
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(self.process.stderr.read())
        self.port = int(line.rpartition(":")[2])

    def place(self):
        return f"{self.name}=iod://127.0.0.1:{self.port}/{self.name}"

    def status(self):
        return subprocess.run([SHIMA, "iod", "--status", f"127.0.0.1:{self.port}", "--key", KEY], check=True, text=True,
                              capture_output=True, timeout=60).stdout

    def end(self, how="terminate"):
        """The exit code and what the node has said."""
        if self.process.poll() is None:
            getattr(self.process, how)()
        _, said = self.process.communicate(timeout=60)
        return self.process.returncode, said


@contextlib.contextmanager
def nodes(names, environment=None):
    """Nodes with targets of these names; the environment has the list of targets and the key."""
    make_key()
    running = []
    try:
        for name in names:
            running.append(Node(name, environment=environment))
        os.environ["SHIMA_IOD_KEY"] = str(KEY)
        os.environ["SHIMA_TARGETS"] = ":".join(node.place() for node in running)
        os.environ["STORED_TARGETS"] = ":".join(f"{node.name}={node.directory}" for node in running)
        yield running
    finally:
        for node in running:
            node.process.kill()
            node.process.communicate()
