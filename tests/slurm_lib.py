"""A real Slurm for tests: two nodes, which are the hosts of bench/two_hosts.py.

scripts/setup unpacks Debian's packages into build/deps/slurm and installs nothing. All files of the cluster (keys,
state, logs, sockets) are in the hosts' state directory. munged and slurmctld run on the first host, a slurmd on each.
Slurm starts the tasks of an allocation through them as on a cluster. Not as on one: the nodes share a file system, a
kernel and processors, and there are no cgroups and no accounting.
"""

import os
import pathlib
import subprocess
import sys
import time

SOURCES = os.environ["SHIMA_SOURCE_DIR"]
sys.path.insert(0, os.path.join(SOURCES, "bench"))
from two_hosts import TwoHosts, Unavailable, processes_in

UNPACKED = pathlib.Path(SOURCES, "build/deps/slurm").resolve()
START_LIMIT_S = 60
STOP_LIMIT_S = 0.5
CPUS = 2  # of each node, whatever the machine has

CONFIGURATION = """ClusterName=shima
SlurmctldHost={first}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={directory}/munge.socket
PluginDir={plugins}
StateSaveLocation={directory}
SlurmdSpoolDir={directory}/%n
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/{task_plugin}
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
MailProg=/bin/true
MpiDefault=none
KillWait=1
NodeName={names} CPUs={cpus}
PartitionName=all Nodes=ALL Default=YES State=UP
"""


def _libraries():
    """The directories of the unpacked libraries, and that of Slurm's plugins."""
    plugins = next(UNPACKED.glob("usr/lib/*/slurm-wlm"), None)
    if plugins is None:
        raise Unavailable(f"no Slurm in {UNPACKED}: scripts/setup test unpacks its packages")
    return [str(path) for path in (plugins.parent, plugins, UNPACKED / plugins.parent.relative_to(UNPACKED / "usr"))]


def _daemon(name):
    return next(path for path in (UNPACKED / f"usr/sbin/{name}-wlm", UNPACKED / f"usr/sbin/{name}") if path.exists())


class Slurm:
    """Starts the cluster on entry, stops it on exit. `environment` is what its commands need, on either host."""

    def __init__(self):
        self.libraries = _libraries()
        self.hosts = TwoHosts()
        self.daemons = []

    def __enter__(self):
        self.hosts.__enter__()
        try:
            self.directory = self.hosts.state / "slurm"
            self.environment = {
                "SLURM_CONF": str(self.directory / "slurm.conf"),
                "LD_LIBRARY_PATH": ":".join(self.libraries),
                "PATH": f"{UNPACKED}/usr/bin:{os.environ['PATH']}",
                "TMPDIR": str(self.directory / "tmp"),
            }
            self._write_files()
            self._start_daemons()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, kind, *_):
        """slurmctld takes seconds to end by itself, and its state is not used again."""
        for daemon in reversed(self.daemons):
            daemon.terminate()
        until = time.monotonic() + STOP_LIMIT_S
        for daemon in self.daemons:
            try:
                daemon.wait(timeout=max(0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        if kind is not None:
            print(self.logs(), file=sys.stderr)
        self.hosts.__exit__()

    def command(self, *words, host=0):
        """What runs something on a host, in the current directory."""
        return [*self.hosts.enter(host), "env", *(f"{name}={value}" for name, value in self.environment.items()), *map(str, words)]

    def run(self, *words, host=0, environment=None, timeout=60, **options):
        """The exit code, standard output and standard error."""
        ended = subprocess.run(self.command(*words, host=host), env=dict(os.environ, **(environment or {})), timeout=timeout,
                               stdin=options.pop("stdin", subprocess.DEVNULL), capture_output=True, text=True, errors="replace", **options)
        return ended.returncode, ended.stdout, ended.stderr

    def allocate(self, tasks=2 * CPUS):
        return Allocation(self, tasks)

    def logs(self):
        return "\n".join(f"--- {log.name}\n" + "\n".join(log.read_text(errors="replace").splitlines()[-12:])
                         for log in sorted(self.directory.glob("*.log")))

    def _write_files(self):
        names = self.hosts.names
        self.directory.mkdir()
        (self.directory / "tmp").mkdir()
        for host, name in enumerate(names):
            # The PMIx of each node makes the same names in the directory for temporary files.
            (self.directory / name / "tmp").mkdir(parents=True)
            self.hosts.call(host, ["mount", "--bind", str(self.directory / name / "tmp"), str(self.directory / "tmp")])
        key = self.directory / "munge.key"
        key.touch(0o600)
        key.write_bytes(os.urandom(128))
        # Nodes of at least so many processors bind their tasks to them, unless they are told not to.
        plugin = "affinity" if len(os.sched_getaffinity(0)) >= CPUS else "none"
        (self.directory / "slurm.conf").write_text(CONFIGURATION.format(
            first=names[0], names=",".join(names), directory=self.directory, plugins=self.libraries[1], task_plugin=plugin, cpus=CPUS))
        # Version 1 is used by nothing here; without this line slurmd looks for a mounted one.
        (self.directory / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        (self.directory / "mpi.conf").write_text(f"PMIxCliTmpDirBase={self.directory}/tmp\n")

    def _start(self, host, name, *words):
        with open(self.directory / f"{name}.out.log", "w", encoding="utf-8") as log:
            daemon = subprocess.Popen(self.command(*words, host=host), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        self.daemons.append(daemon)
        return daemon

    def _await(self, what, reached):
        until = time.monotonic() + START_LIMIT_S
        while not reached():
            if time.monotonic() > until or any(daemon.poll() is not None for daemon in self.daemons):
                raise RuntimeError(f"{what}: it does not start")
            time.sleep(0.02)

    def _start_daemons(self):
        path = self.directory
        self._start(0, "munged", _daemon("munged"), "--foreground", "--force", f"--key-file={path}/munge.key",
                    f"--socket={path}/munge.socket", f"--pid-file={path}/munge.pid", f"--log-file={path}/munge.log",
                    f"--seed-file={path}/munge.seed", "--num-threads=2")
        self._await("munged", (path / "munge.socket").exists)
        self._start(0, "slurmctld", _daemon("slurmctld"), "-D")
        for host, name in enumerate(self.hosts.names):
            self._start(host, name, _daemon("slurmd"), "-D", "-N", name, "-d", _daemon("slurmstepd"))
        self._await("the nodes", lambda: self.run("sinfo", "-h", "-N", "-o", "%T")[1].split() == ["idle"] * len(self.hosts.names))


class Allocation:
    """Both nodes for a job. `environment` has the variables that the commands of this job find."""

    def __init__(self, slurm, tasks):
        self.slurm = slurm
        self.tasks = tasks

    def __enter__(self):
        variables = pathlib.Path("allocation.environment").absolute()
        variables.unlink(missing_ok=True)
        script = f"env -0 >'{variables}.new' && mv '{variables}.new' '{variables}' && cat"
        self.process = subprocess.Popen(self.slurm.command("salloc", "-Q", "-N2", f"-n{self.tasks}", "sh", "-c", script),
                                        stdin=subprocess.PIPE, start_new_session=True)
        self.slurm._await("an allocation", lambda: variables.exists() or self.process.poll() is not None)
        lines = variables.read_text().split("\0")
        self.environment = dict(line.split("=", 1) for line in lines if line.startswith("SLURM_"))
        return self

    def __exit__(self, *_):
        """As when the user leaves the shell of the allocation."""
        self.process.stdin.close()
        try:
            self.process.wait(timeout=START_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise

    @property
    def job(self):
        return self.environment["SLURM_JOB_ID"]

    def run(self, *words, environment=None, **options):
        return self.slurm.run(*words, environment={**self.environment, **(environment or {})}, **options)
