"""I/O nodes for tests of the command: daemons on loopback, each with one target and one directory, that end with the test.

lost_job() starts fault/iod_lost.c, whose four ranks use both nodes until a call fails.
"""

import contextlib
import os
import pathlib
import secrets
import subprocess

SHIMA = os.environ["SHIMA"]
KEY = pathlib.Path("iod.key").absolute()


STRIPE = ["--hint", "shima_targets=a,b", "--hint", "striping_factor=2", "--hint", "striping_unit=5000"]
HANGS_S = 60


def make_key(path=KEY):
    path.touch(mode=0o600)
    path.write_text(secrets.token_hex(32) + "\n")
    return path


class Node:
    def __init__(self, name, port=0, environment=None, host="127.0.0.1", before=()):
        """`before`: the words that start the command on another host."""
        self.name, self.directory = name, pathlib.Path(f"target-{name}").absolute()
        self.files = pathlib.Path(f"files-{name}").absolute()
        self.directory.mkdir(exist_ok=True)
        self.files.mkdir(exist_ok=True)
        self.port, self.host, self.before = port, host, before
        self.start(environment)

    def start(self, environment=None):
        """At the port that it had before."""
        self.process = subprocess.Popen(
            [*self.before, SHIMA, "iod", "--listen", f"{self.host}:{self.port}", "--target", f"{self.name}={self.directory}",
             "--directory", f"files-{self.name}={self.files}", "--key", KEY],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ, **(environment or {})))
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(self.process.stderr.read())
        self.port = int(line.rpartition(":")[2])

    def place(self):
        return f"{self.name}=iod://{self.host}:{self.port}/{self.name}"

    def path(self, name=""):
        """Of a file in the node's directory, or of the directory."""
        return f"iod://{self.host}:{self.port}/files-{self.name}" + (f"/{name}" if name else "")

    def status(self):
        return subprocess.run([*self.before, SHIMA, "iod", "--status", f"{self.host}:{self.port}", "--key", KEY], check=True, text=True,
                              capture_output=True, timeout=60).stdout

    def end(self, how="terminate"):
        """The exit code and what the node has said."""
        if self.process.poll() is None:
            getattr(self.process, how)()
        _, said = self.process.communicate(timeout=60)
        return self.process.returncode, said


def compile_lost():
    source = pathlib.Path(os.environ["SHIMA_SOURCE_DIR"]) / "tests/fault/iod_lost.c"
    subprocess.run([os.environ["MPICC"], "-std=gnu11", "-O1", "-o", "iod_lost", source], check=True)


def lost_job(*arguments, environment=None, before=()):
    """The first argument: collective or independent; the second, if a disk fails but no node: disk."""
    command = ["timeout", "-k", "5", str(HANGS_S), *before, SHIMA, "run", "-n", "4", "--mpiexec", os.environ["MPIEXEC"], *STRIPE,
               "./iod_lost", *arguments]
    settings = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            env=dict(os.environ, **settings, **(environment or {})))


def wait_until_going(job):
    """What the job has said by then."""
    said = ""
    while "going" not in said:
        line = job.stdout.readline()
        if not line:
            raise RuntimeError(f"the job ended early: {said}")
        said += line
    return said


def check_lost(job, said="", error="MPI_ERR_IO"):
    """All four ranks have had this error, and end."""
    said += job.communicate(timeout=HANGS_S + 10)[0]
    if said.count(f"{error}, as all") != 4:
        raise RuntimeError(f"{' '.join(map(str, job.args))}: exit status {job.returncode}: {said}")


@contextlib.contextmanager
def nodes(names, environment=None, faults=None):
    """Nodes with targets of these names; the environment has the list of targets and the key. `faults`: by name, the
    value of SHIMA_FAULT for this node alone."""
    make_key()
    running = []
    try:
        for name in names:
            own = {"SHIMA_FAULT": faults[name]} if faults and name in faults else {}
            running.append(Node(name, environment={**(environment or {}), **own}))
        os.environ["SHIMA_IOD_KEY"] = str(KEY)
        os.environ["SHIMA_TARGETS"] = ":".join(node.place() for node in running)
        os.environ["STORED_TARGETS"] = ":".join(f"{node.name}={node.directory}" for node in running)
        yield running
    finally:
        for node in running:
            node.process.kill()
            node.process.communicate()
