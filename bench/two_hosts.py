#!/usr/bin/env python3
"""Two hosts on one machine, for MPI jobs that must cross a network.

The problem: code for several nodes cannot be tested on one, because MPI detects that all ranks share
a host. Linux can simulate hosts: each "host" is a set of namespaces (network, host name, mounts) held
open by one sleeping process; a veth pair is the cable between them; /etc/hosts inside maps the
names; and a stand-in for ssh enters the other host's namespaces instead of logging in. The file
system stays shared, as on a cluster. The traffic is read from the cable's own counters. More
than two hosts have a cable each to a switch, a bridge among the interfaces of the first.

Everything depends on the two holder processes: when they exit, the kernel removes namespaces and
cable. They exit with the program that created them, even if that is killed.

    bench/two_hosts.py run --mpiexec build/deps/mpich/bin/mpiexec -n 8 ./prog args...
    bench/two_hosts.py up            prints a state directory;  enter: nsenter (see its README)
    bench/two_hosts.py down STATE

Needs root, `ip`, `nsenter` and `unshare`; exits with 77 if they are not available. From Python:

    with TwoHosts() as hosts:
        hosts.run_mpi(mpiexec, 8, ["./prog"])
        print(hosts.bytes_on_wire())
"""

import argparse
import ctypes
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid

NAMES = ("shima-a", "shima-b", "shima-c", "shima-d")
ADDRESSES = ("10.77.0.1", "10.77.0.2", "10.77.0.3", "10.77.0.4")
SKIP = 77

SSH_STAND_IN = """#!/bin/sh
# Stands in for ssh: ssh [options] HOST COMMAND...  enters HOST's namespaces and runs COMMAND there.
while [ "${{1#-}}" != "$1" ]; do
  case $1 in -[bcDeFIiJLlmoOpQRSWw]) shift 2 ;; *) shift ;; esac
done
pid=$(cat '{state}'/"$1".pid) || exit 255
shift
nsenter -t "$pid" -n -u -m sh -c "cd '$PWD' && $*" </dev/null
status=$?
echo $status >>'{state}/{daemons}'
exit $status
"""

# The file in the state directory to which the stand-in for ssh writes the exit codes of daemons.
DAEMONS = "daemons"
# Open MPI 5's daemon (PRTE_ERR_SILENT, -43) when it could not start; no rank has run then.
DAEMON_DID_NOT_START = "213"

# UCX identifies a machine by the kernel's boot id and would use shared memory between "hosts"
# that have the same one; it finds network devices in /sys, which shows those of the mounter.
HOLDER = """
hostname {name} && mount --bind {state}/hosts /etc/hosts &&
mount --bind {state}/{name}.boot_id /proc/sys/kernel/random/boot_id &&
mount -t sysfs sysfs /sys && ip link set lo up &&
echo ready && exec sleep infinity
"""


class Unavailable(Exception):
    """This machine or user cannot create hosts; the message has the reason."""


def why_unavailable():
    if os.geteuid() != 0:
        return "needs root"
    missing = [tool for tool in ("ip", "nsenter", "unshare") if not shutil.which(tool)]
    if missing:
        return "needs " + ", ".join(missing)
    probe = subprocess.run(["unshare", "--net", "--uts", "--mount", "true"], capture_output=True)
    return None if probe.returncode == 0 else "namespaces are forbidden here"


def die_with_parent():
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class TwoHosts:
    """Creates the hosts on entry, removes all traces on exit. `lasting` hosts outlive the process."""

    def __init__(self, lasting=False, count=2):
        reason = why_unavailable()
        if reason:
            raise Unavailable(reason)
        self.lasting = lasting
        self.names = NAMES[:count]
        self.state = None
        self.holders = []

    def __enter__(self):
        self.state = pathlib.Path(tempfile.mkdtemp(prefix="shima-hosts-"))
        try:
            self._write_state_files()
            for name in self.names:
                self._start_holder(name)
            if len(self.names) == 2:
                self._plug_cable()
            else:
                self._plug_switch()
        except BaseException:
            self.__exit__()
            raise
        self._wire_start = self._wire_counter()
        return self

    def __exit__(self, *_):
        remove(self.state)
        for holder in self.holders:
            holder.wait()

    def _write_state_files(self):
        lines = [f"{address} {name}\n" for address, name in zip(ADDRESSES, self.names)]
        (self.state / "hosts").write_text("127.0.0.1 localhost\n" + "".join(lines))
        for name in self.names:
            (self.state / f"{name}.boot_id").write_text(f"{uuid.uuid4()}\n")
        ssh = self.state / "ssh"
        ssh.write_text(SSH_STAND_IN.format(state=self.state, daemons=DAEMONS))
        ssh.chmod(0o755)
        (self.state / "README").write_text(
            f"nsenter -t $(cat {self.state}/{NAMES[0]}.pid) -n -u -m   enters the first host\n")

    def _start_holder(self, name):
        holder = subprocess.Popen(
            ["unshare", "--net", "--uts", "--mount", "--propagation", "private", "sh", "-c",
             HOLDER.format(name=name, state=self.state)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
            start_new_session=True, preexec_fn=None if self.lasting else die_with_parent)
        self.holders.append(holder)
        (self.state / f"{name}.pid").write_text(str(holder.pid))
        if holder.stdout.readline().strip() != "ready":
            raise Unavailable(f"could not set up host {name}")

    def _plug_cable(self):
        # Created inside the first host with its far end in the second: it never shows outside.
        peer = str(self.holders[1].pid)
        self.call(0, ["ip", "link", "add", "eth0", "type", "veth",
                      "peer", "name", "eth0", "netns", peer])
        self._address_hosts()

    def _plug_switch(self):
        self.call(0, ["ip", "link", "add", "switch", "type", "bridge"])
        self.call(0, ["ip", "link", "set", "switch", "up"])
        for host, holder in enumerate(self.holders):
            self.call(0, ["ip", "link", "add", f"port{host}", "type", "veth",
                          "peer", "name", "eth0", "netns", str(holder.pid)])
            self.call(0, ["ip", "link", "set", f"port{host}", "master", "switch", "up"])
        self._address_hosts()

    def _address_hosts(self):
        for host, name in enumerate(self.names):
            self.call(host, ["ip", "address", "add", f"{ADDRESSES[host]}/24", "dev", "eth0"])
            self.call(host, ["ip", "link", "set", "eth0", "up"])
        for host in range(len(self.names)):
            self._await_carrier(host)

    def _await_carrier(self, host):
        """The kernel takes up to a second to enable a cable; until then MPIs see no network."""
        for _ in range(500):
            state = subprocess.run(self.enter(host) + ["cat", "/sys/class/net/eth0/operstate"],
                                   capture_output=True, text=True).stdout
            if state.strip() == "up":
                return
            time.sleep(0.02)
        raise Unavailable("the cable between the hosts could not be enabled")

    def enter(self, host):
        """The command prefix that runs something on a host, in the current directory."""
        pid = str(self.holders[host].pid)
        return ["nsenter", "-t", pid, "-n", "-u", "-m", f"--wd={os.getcwd()}"]

    def call(self, host, command):
        subprocess.run(self.enter(host) + command, check=True, stdin=subprocess.DEVNULL)

    def limit_wire(self, mib_s):
        """Lets each host send at most so much."""
        for host in range(len(self.names)):
            self.call(host, ["tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", f"{mib_s << 23}bit",
                             "burst", "256kb", "latency", "50ms"])

    def unlimit_wire(self):
        for host in range(len(self.names)):
            self.call(host, ["tc", "qdisc", "del", "dev", "eth0", "root"])

    def _wire_counter(self):
        """Bytes sent by all hosts."""
        return sum(self._sent_by(holder) for holder in self.holders)

    def _sent_by(self, holder):
        for line in pathlib.Path(f"/proc/{holder.pid}/net/dev").read_text().splitlines():
            if line.strip().startswith("eth0:"):
                return int(line.split(":")[1].split()[8])
        raise RuntimeError("the cable of a host was removed")

    def bytes_on_wire(self):
        """Bytes that went over the cables since the hosts were created or the last call."""
        now = self._wire_counter()
        crossed, self._wire_start = now - self._wire_start, now
        return crossed

    def mpi_command(self, mpiexec, ranks, command, before=(), by_node=False):
        """The whole command that starts the ranks on the hosts, in blocks or (by_node) in turn, launched from the first;
        `before` starts mpiexec."""
        hosts = len(self.names)
        ends = [-(-ranks * (host + 1) // hosts) for host in range(hosts)]
        split = [(name, end - begin) for name, begin, end in zip(self.names, [0, *ends], ends)]
        version = subprocess.run([mpiexec, "--version"], capture_output=True, text=True).stdout
        if "Open MPI" in version or "OpenRTE" in version:
            options = self._openmpi_options(version, split, by_node)
            if ranks > len(os.sched_getaffinity(0)):
                options += YIELD
        else:
            hosts = ",".join(f"{name}:{count}" for name, count in split)
            options = ["-launcher", "ssh", "-launcher-exec", f"{self.state}/ssh"]
            options += ["-hosts", ",".join(self.names), "-ppn", "1"] if by_node else ["-hosts", hosts]
        return self.enter(0) + [*before, str(mpiexec), *options, "-n", str(ranks), *command]

    def _openmpi_options(self, version, split, by_node):
        hostfile = self.state / "hostfile"
        hostfile.write_text("".join(f"{name} slots={count}\n" for name, count in split))
        old = "(Open MPI) 4" in version or "OpenRTE" in version
        agent = (["--mca", "plm_rsh_agent"] if old else ["--prtemca", "plm_ssh_agent"])
        # One subnet, no other route: keeps a daemon from announcing an address that is unreachable.
        # --leave-session-attached: otherwise the output of daemons is lost.
        return ["--hostfile", str(hostfile), *agent, f"{self.state}/ssh", "--leave-session-attached",
                *(("--map-by", "node:OVERSUBSCRIBE", "--rank-by", "node") if by_node else ("--map-by", "slot:OVERSUBSCRIBE")),
                "--bind-to", "none"]

    def run_mpi(self, mpiexec, ranks, command, **options):
        """subprocess.run of mpi_command, repeated if Open MPI's daemon exits before it has started a
        rank, as happens about once in some hundred runs; permits Open MPI to run as root."""
        env = dict(options.pop("env", os.environ), **ROOT_ENVIRONMENT, TMPDIR=str(self.state))
        whole = self.mpi_command(mpiexec, ranks, command, options.pop("before", ()), options.pop("by_node", False))
        job = subprocess.run(whole, env=env, **options)
        if job.returncode != 0 and self._daemon_did_not_start():
            print("two_hosts: the launcher's daemon did not start; starting the job again", file=sys.stderr)
            job = subprocess.run(whole, env=env, **options)
        return job

    def _daemon_did_not_start(self):
        daemons = self.state / DAEMONS
        return daemons.exists() and DAEMON_DID_NOT_START in daemons.read_text().split()


# The hosts have a slot for each rank, so Open MPI takes them for machines with as many cores: its ranks would poll for
# 4 ms, a turn of the scheduler, wherever they wait. With more ranks than slots it sets this itself.
YIELD = ["--mca", "mpi_yield_when_idle", "1"]

ROOT_ENVIRONMENT = {name: "1" for name in (
    "OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
    "PRTE_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM")}


def processes_in(network):
    """All processes in a network namespace: the holder, and daemons that a launcher left behind."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.readlink(entry / "ns/net") == network:
                found.append(int(entry.name))
        except OSError:
            pass  # it exited meanwhile
    return found


def remove(state):
    """Ends everything inside the hosts of a state directory, then the directory."""
    own = os.readlink("/proc/self/ns/net")
    for pidfile in pathlib.Path(state).glob("*.pid"):
        try:
            network = os.readlink(f"/proc/{pidfile.read_text()}/ns/net")
        except OSError:
            continue
        for _ in range(50):
            # The holder of an incomplete host may still be in our own network: never match that.
            victims = processes_in(network) if network != own else [int(pidfile.read_text())]
            for pid in victims:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            if not processes_in(network) or network == own:
                break
            time.sleep(0.02)
    shutil.rmtree(state, ignore_errors=True)


def run_command(options):
    with TwoHosts() as hosts:
        result = hosts.run_mpi(options.mpiexec, options.n, options.command, before=options.before.split(),
                               by_node=options.by_node)
        crossed = hosts.bytes_on_wire()
    if options.json:
        print(json.dumps({"bytes_on_wire": crossed}))
    else:
        print(f"two_hosts: {crossed / 2**20:.1f} MiB crossed the wire", file=sys.stderr)
    return result.returncode


def up_command(_):
    hosts = TwoHosts(lasting=True).__enter__()
    print(hosts.state)
    return 0


def down_command(options):
    remove(options.state)
    return 0


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(required=True)
    run = commands.add_parser("run", help="make two hosts, run an MPI job over them, remove them")
    run.add_argument("--mpiexec", required=True)
    run.add_argument("-n", type=int, default=2, help="ranks, half on each host")
    run.add_argument("--by-node", action="store_true", help="deal the ranks to the hosts in turn")
    run.add_argument("--before", default="", metavar="WORDS", help="the beginning of the command, before mpiexec")
    run.add_argument("--json", action="store_true", help="print the bytes on the wire as JSON")
    run.add_argument("command", nargs=argparse.REMAINDER)
    run.set_defaults(do=run_command)
    up = commands.add_parser("up", help="make two hosts that stay; prints their state directory")
    up.set_defaults(do=up_command)
    down = commands.add_parser("down", help="remove hosts made by up")
    down.add_argument("state")
    down.set_defaults(do=down_command)
    return parser.parse_args()


def main():
    # SIGTERM must clean up too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = parse()
    try:
        return options.do(options)
    except Unavailable as reason:
        print(f"two_hosts: skipped: {reason}", file=sys.stderr)
        return SKIP


if __name__ == "__main__":
    sys.exit(main())
