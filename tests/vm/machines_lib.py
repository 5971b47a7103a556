"""Several virtual machines, for tests that namespaces cannot simulate: separate kernels and page caches, and power cuts.

Each machine is a QEMU guest. Its root is the host's, read-only by virtiofs, under its own tmpfs, so every program of the
host has the same path. All guests share one bridge in a private network namespace; the host reaches the guests' agents
(guest/agent) by sockets created inside it. Every process exits with the process that created the machines.

    with Machines(3) as machines:
        print(machines.run(1, "uname -a").output)

Needs root, QEMU, and what `scripts/setup test` unpacks into build/deps/vm. SHIMA_VM_ACCELERATOR names QEMU's accelerator.
"""

import collections
import ctypes
import glob
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from initramfs_lib import initramfs

GUEST = pathlib.Path(__file__).resolve().parent / "guest"
UNPACKED = pathlib.Path(os.environ.get("SHIMA_SOURCE_DIR", GUEST.parents[2])) / "build" / "deps" / "vm"
NETWORK = "10.78.0."
AGENT_PORT = 99
CLONE_NEWNET = 0x40000000
PR_SET_PDEATHSIG = 1
VIRTIOFSD = "/usr/lib/qemu/virtiofsd"
TOOLS = ("qemu-system-x86_64", "busybox", "ip", "nsenter", "unshare", "mkfs.ext4", VIRTIOFSD)
MEMORY_MIB = 768
DISK_BYTES = 2 << 30
BOOT_LIMIT_S = 180
# Without virtualization hardware each of these costs an emulated guest half a second or more.
KERNEL_WORDS = "console=ttyS0 quiet panic=-1 mitigations=off nokaslr tsc=reliable no_timer_check random.trust_cpu=on " \
               "cryptomgr.notests nowatchdog init_on_alloc=0 nopti rcupdate.rcu_expedited=1"
# Programs choose their copy loops by the processor; wide vector instructions are slow when emulated (98 s instead of 69).
PROCESSOR = "Nehalem"

Done = collections.namedtuple("Done", "code output")


class Unavailable(Exception):
    """This host or user cannot run machines; the message has the reason."""


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def address_of(machine):
    return f"{NETWORK}{10 + machine}"


def newest(pattern):
    found = sorted(glob.glob(str(pattern)))
    if not found:
        raise Unavailable(f"no {pattern} (scripts/setup test unpacks it)")
    return pathlib.Path(found[-1])


def check_host():
    if os.geteuid() != 0:
        raise Unavailable("needs root")
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        raise Unavailable("needs " + ", ".join(missing))


class Machines:
    """Boots `count` machines on entry, removes all traces on exit. Machine 0 has the modules of an NFS server."""

    def __init__(self, count):
        check_host()
        self.count = count
        self.kernel = newest(UNPACKED / "boot" / "vmlinuz-*")
        self.modules = newest(UNPACKED / "lib" / "modules" / "*")
        self.state = None
        self.processes = {}  # by name

    def __enter__(self):
        self.state = pathlib.Path(tempfile.mkdtemp(prefix="shima-vm-"))
        try:
            self._write_initramfs()
            self._make_network()
            for machine in range(self.count):
                self._format_disk(machine)
                self._power_on(machine)
            for machine in range(self.count):
                self._await_agent(machine)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in sorted(self.processes, reverse=True):  # guests, then the network, then their file servers
            self._kill(name)
        shutil.rmtree(self.state, ignore_errors=True)

    # --- power

    def cut_power(self, machine):
        """Bytes not yet sent to the disk or to another machine are lost."""
        self._kill(f"vm{machine}")
        self._kill(f"fs{machine}")

    def boot(self, machine):
        """Starts a machine whose power was cut: the same disk, fresh memory."""
        self._power_on(machine)
        self._await_agent(machine)

    # --- commands

    def run(self, machine, command, directory="/", limit_s=300):
        """Runs a shell command; code 124: timeout, 255: the connection was lost."""
        with self._connect(machine) as line:
            line.sendall(f"{directory}\0{command}\0".encode())
            line.settimeout(limit_s)
            output = b""
            try:
                while more := line.recv(65536):
                    output += more
            except TimeoutError:
                return Done(124, output.decode(errors="replace") + f"\n[no end after {limit_s} s]\n")
            except OSError:
                pass
        text, mark, code = output.decode(errors="replace").rpartition("\n\1exit ")
        return Done(int(code), text) if mark else Done(255, output.decode(errors="replace"))

    def check(self, machine, command, **options):
        """The output of a command that must succeed."""
        done = self.run(machine, command, **options)
        if done.code != 0:
            raise RuntimeError(f"vm{machine}: {command}: exit code {done.code}\n{done.output}")
        return done.output

    def _connect(self, machine):
        """A socket created in the machines' network namespace stays in it."""
        libc = ctypes.CDLL(None, use_errno=True)
        network = self.processes["network"].pid
        with open("/proc/self/ns/net") as own, open(f"/proc/{network}/ns/net") as theirs:
            if libc.setns(theirs.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")
            try:
                line = socket.socket()
            finally:
                libc.setns(own.fileno(), CLONE_NEWNET)
        # A machine without power closes no connection.
        line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in ((socket.TCP_KEEPIDLE, 5), (socket.TCP_KEEPINTVL, 2), (socket.TCP_KEEPCNT, 5)):
            line.setsockopt(socket.IPPROTO_TCP, option, value)
        line.settimeout(20)
        line.connect((address_of(machine), AGENT_PORT))
        return line

    # --- making

    def _write_initramfs(self):
        hosts = "127.0.0.1 localhost\n" + "".join(f"{address_of(i)} vm{i}\n" for i in range(self.count))
        (self.state / "initramfs").write_bytes(initramfs(self.modules, (GUEST / "init").read_bytes(), hosts))

    def _make_network(self):
        lines = ["ip link set lo up", "ip link add br0 type bridge", "ip link set br0 mtu 9000 up",
                 f"ip addr add {NETWORK}1/24 dev br0"]
        for i in range(self.count):
            lines += [f"ip tuntap add tap{i} mode tap", f"ip link set tap{i} mtu 9000 master br0 up"]
        script = " && ".join([*lines, "echo ready", "exec sleep infinity"])
        # A log file, not our own output: a reader that waits for its end would wait for this process.
        with open(self.state / "network.log", "w") as log:
            network = subprocess.Popen(["unshare", "--net", "sh", "-c", script], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True,
                                       preexec_fn=die_with_parent)
        self.processes["network"] = network
        with network.stdout as answer:
            if answer.readline().strip() != "ready":
                raise Unavailable(f"no network for machines: {(self.state / 'network.log').read_text().strip()}")

    def _format_disk(self, machine):
        image = self.state / f"disk{machine}"
        with open(image, "wb") as file:
            file.truncate(DISK_BYTES)
        subprocess.run(["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=1,nodiscard", image], check=True)

    def _start(self, name, command, log):
        with open(self.state / log, "w") as output:
            self.processes[name] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output,
                                                    stderr=subprocess.STDOUT, start_new_session=True,
                                                    preexec_fn=die_with_parent)

    def _power_on(self, machine):
        share = self.state / f"fs{machine}.sock"
        share.unlink(missing_ok=True)
        self._start(f"fs{machine}", [VIRTIOFSD, f"--socket-path={share}", "-o", "source=/", "-o", "cache=auto",
                                     "-o", "sandbox=chroot"], f"fs{machine}.log")
        for _ in range(500):
            if share.exists():
                break
            time.sleep(0.01)
        network = str(self.processes["network"].pid)
        self._start(f"vm{machine}", ["nsenter", "-t", network, "-n", *self._qemu_command(machine, share)],
                    f"console{machine}")

    def _qemu_command(self, machine, share):
        role = "server" if machine == 0 else "client"
        words = f"{KERNEL_WORDS} who={machine} role={role} agent={GUEST}/agent network={NETWORK}"
        accelerator = os.environ.get("SHIMA_VM_ACCELERATOR", "tcg,thread=multi,tb-size=256")
        return ["qemu-system-x86_64", "-name", f"vm{machine}", "-machine", "q35,smm=off", "-accel", accelerator,
                "-cpu", PROCESSOR, "-smp", "1", "-m", str(MEMORY_MIB), "-nodefaults", "-display", "none", "-no-reboot",
                "-serial", "stdio", "-object", f"memory-backend-memfd,id=memory,size={MEMORY_MIB}M,share=on",
                "-numa", "node,memdev=memory", "-kernel", str(self.kernel), "-initrd", f"{self.state}/initramfs",
                "-append", words, "-chardev", f"socket,id=share,path={share}",
                "-device", "vhost-user-fs-pci,chardev=share,tag=root",
                "-netdev", f"tap,id=net,ifname=tap{machine},script=no,downscript=no",
                "-device", f"virtio-net-pci,netdev=net,mac=52:54:00:00:00:{machine:02x},romfile=",
                "-drive", f"file={self.state}/disk{machine},if=none,id=disk,format=raw,cache=writeback",
                "-device", "virtio-blk-pci,drive=disk", "-device", "virtio-rng-pci"]

    def _await_agent(self, machine):
        console = self.state / f"console{machine}"
        end = time.monotonic() + BOOT_LIMIT_S
        while "READY" not in console.read_text(errors="replace"):
            if time.monotonic() > end or self.processes[f"vm{machine}"].poll() is not None:
                raise RuntimeError(f"vm{machine} does not boot:\n{console.read_text(errors='replace')[-2000:]}")
            time.sleep(0.05)

    def _kill(self, name):
        process = self.processes.pop(name, None)
        if process is not None:
            process.kill()
            process.wait()
