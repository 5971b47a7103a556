"""Disks of a known speed on one machine: images of ext4 behind loop devices, slowed by a cgroup.

The kernel's block throttle limits a group of processes to a number of bytes and requests per second
and device. It applies only to a process's own requests to the disk, so a measured program must use
O_DIRECT. Needs root, losetup and the cgroup controller blkio (v1) or io (v2).

    with ThrottledDisks(parent, count=2, mib_s=100, iops=400) as disks:
        run(disks.inside([command...]))   # works in disks.directories
"""

import os
import pathlib
import shutil
import subprocess

CGROUP = pathlib.Path("/sys/fs/cgroup")
V1 = CGROUP / "blkio"


class NotHere(Exception):
    """The reason why this machine cannot have such disks."""


def run_tool(*command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        raise NotHere(f"{' '.join(command)}: {result.stderr.strip() or result.returncode}")
    return result.stdout.strip()


def reason_why_not():
    """A sentence, or None if such disks are possible (as far as can be checked without creating one)."""
    if os.geteuid() != 0:
        return "making disks needs root"
    missing = [tool for tool in ("losetup", "mkfs.ext4", "mount") if not shutil.which(tool)]
    if missing:
        return f"making disks needs {', '.join(missing)}"
    if not V1.is_dir() and "io" not in controllers_v2():
        return "no cgroup controller for block devices (blkio or io)"
    return None


def controllers_v2():
    path = CGROUP / "cgroup.controllers"
    return path.read_text().split() if path.exists() else []


class ThrottledDisks:
    def __init__(self, parent, count=1, mib_s=100, iops=400, image_mib=1024):
        self.root = pathlib.Path(parent) / f"disks-{os.getpid()}"
        self.count, self.mib_s, self.iops, self.image_mib = count, mib_s, iops, image_mib
        self.devices, self.directories, self.group = [], [], None

    def __enter__(self):
        self.root.mkdir(parents=True)
        try:
            for number in range(self.count):
                self.add_disk(number)
            self.add_group()
        except (NotHere, OSError) as problem:
            self.__exit__()
            raise NotHere(str(problem)) from problem
        return self

    def add_disk(self, number):
        image, directory = self.root / f"{number}.img", self.root / str(number)
        with open(image, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, self.image_mib << 20)
        device = run_tool("losetup", "--find", "--show", "--direct-io=on", str(image))
        self.devices.append(device)
        run_tool("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", device)
        directory.mkdir()
        run_tool("mount", device, str(directory))
        self.directories.append(directory)

    def add_group(self):
        name = f"shima-bench-{os.getpid()}"
        if V1.is_dir():
            self.group = V1 / name
            self.group.mkdir()
            limits = {f"blkio.throttle.{op}_{what}_device": value for op in ("read", "write")
                      for what, value in (("bps", self.mib_s << 20), ("iops", self.iops))}
            rules = [(file, f"{number} {value}") for number in self.numbers()
                     for file, value in limits.items()]
        else:
            (CGROUP / "cgroup.subtree_control").write_text("+io")
            self.group = CGROUP / name
            self.group.mkdir()
            bps = self.mib_s << 20
            rules = [("io.max", f"{number} rbps={bps} wbps={bps} riops={self.iops} wiops={self.iops}")
                     for number in self.numbers()]
        for file, rule in rules:
            (self.group / file).write_text(rule)

    def numbers(self):
        ids = [os.stat(device).st_rdev for device in self.devices]
        return [f"{os.major(number)}:{os.minor(number)}" for number in ids]

    def inside(self, command):
        """The command, run in the throttled group."""
        return ["sh", "-c", f'echo $$ >"{self.group}/cgroup.procs" && exec "$@"', "sh",
                *map(str, command)]

    def __exit__(self, *_):
        for directory in self.directories:
            subprocess.run(["umount", str(directory)], check=False)
        for device in self.devices:
            subprocess.run(["losetup", "-d", device], check=False)
        if self.group:
            self.group.rmdir()
        shutil.rmtree(self.root, ignore_errors=True)
