#!/usr/bin/env python3
# TIMEOUT: 600
# FLAVOURS: mpich-wheel
"""The results and errors of system calls on names: through `shima mount`, with striped files, and on the file system itself, with
plain ones. Both must be equal, as root and as another user, except for the EXCEPTIONS.

(Like pjdfstest, which no package registry has.) A world holds one object of each kind; a case is a call with one or two of them.
After a call that succeeds the two worlds must be equal, too.
"""

import errno
import itertools
import os
import pathlib
import shutil
import stat
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from mount_lib import DIRECTORY, MOUNT, compile_ranks, enter, in_memory, make_striped, mounted

NOBODY = 65534
STRIPED = ("file", "second", "full/inner")
KINDS = ("file", "second", "dir", "full", "full/inner", "link", "dangling", "loop", "fifo", "none", "file/under", "none/under",
         "x" * 256)
POOL = 5000

# (call, kinds): (the mount's error, the reason). Only for kinds that are striped there.
EXCEPTIONS = {
    "link of a striped file": errno.EPERM,       # a striped file has only one name
    "exchange with a striped file, across directories": errno.EINVAL,  # subfiles are beside their file
}


# --- worlds ---------------------------------------------------------------------------------------

class World:
    def __init__(self, root, striped):
        self.root, self.striped = root, striped
        self.pool = iter(range(POOL))

    def file(self, name):
        path = self.root / name
        if self.striped:
            os.rename(MOUNT / f"pool/{next(self.pool)}", path)
        with open(path, "r+b" if self.striped else "wb") as file:
            file.write(b"0123456789" * 100)
        os.chmod(path, 0o644)

    def build(self, modes):
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.mkdir()
        for directory in ("dir", "full"):
            (self.root / directory).mkdir()
        for name in STRIPED:
            self.file(name)
        os.symlink("file", self.root / "link")
        os.symlink("nowhere", self.root / "dangling")
        os.symlink("loop", self.root / "loop")
        os.mkfifo(self.root / "fifo")
        for name, mode in modes.items():
            os.chmod(self.root / name, mode)

    def look(self):
        """All state visible to a user, except times and inode numbers."""
        seen = []
        for directory, directories, files in sorted(os.walk(self.root)):
            for name in sorted(directories + files):
                path = os.path.join(directory, name)
                facts = os.lstat(path)
                what = [os.path.relpath(path, self.root), stat.filemode(facts.st_mode), facts.st_uid, facts.st_gid]
                if not stat.S_ISDIR(facts.st_mode):
                    what += [facts.st_nlink, facts.st_size]
                if stat.S_ISREG(facts.st_mode):
                    what.append(pathlib.Path(path).read_bytes()[:2000])
                seen.append(what)
        return seen


# --- calls ----------------------------------------------------------------------------------------

def opened(flags, then=None, mode=0o666):
    def call(path):
        fd = os.open(path, flags | os.O_NONBLOCK, mode)
        try:
            return then(fd) if then else None
        finally:
            os.close(fd)
    return call


def renamed(flags):
    def call(source, goal):
        libc = __import__("ctypes").CDLL(None, use_errno=True)
        if libc.renameat2(-100, os.fsencode(source), -100, os.fsencode(goal), flags) != 0:
            number = __import__("ctypes").get_errno()
            raise OSError(number, os.strerror(number))
    return call


NO_REPLACE, EXCHANGE = 1, 2
ONE = {
    "stat": lambda path: stat.filemode(os.stat(path).st_mode),
    "lstat": lambda path: stat.filemode(os.lstat(path).st_mode),
    "open to read": opened(os.O_RDONLY, lambda fd: os.read(fd, 20) if stat.S_ISREG(os.fstat(fd).st_mode) else None),
    "open to write": opened(os.O_WRONLY, lambda fd: os.pwrite(fd, b"abc", 5)),
    "open for both": opened(os.O_RDWR, lambda fd: os.pwrite(fd, b"abc", 5) if stat.S_ISREG(os.fstat(fd).st_mode) else None),
    "open to append": opened(os.O_WRONLY | os.O_APPEND, lambda fd: os.write(fd, b"abc")),
    "open and truncate": opened(os.O_WRONLY | os.O_TRUNC),
    "create": opened(os.O_CREAT | os.O_RDWR, lambda fd: os.write(fd, b"new") if stat.S_ISREG(os.fstat(fd).st_mode) else None),
    "create anew": opened(os.O_CREAT | os.O_EXCL | os.O_WRONLY, lambda fd: os.write(fd, b"new"), 0o640),
    "create not readable": opened(os.O_CREAT | os.O_EXCL | os.O_RDWR, lambda fd: os.write(fd, b"new"), 0),
    "open directory": opened(os.O_DIRECTORY | os.O_RDONLY),
    "open not links": opened(os.O_NOFOLLOW | os.O_RDONLY),
    "write before the start": opened(os.O_WRONLY, lambda fd: os.pwrite(fd, b"a", -1)),
    "write beyond all": opened(os.O_WRONLY, lambda fd: os.pwrite(fd, b"abc", 2**63 - 2)),
    "truncate open to read": opened(os.O_RDONLY, lambda fd: os.ftruncate(fd, 3)),
    "sync": opened(os.O_RDONLY, lambda fd: os.fsync(fd) if not stat.S_ISFIFO(os.fstat(fd).st_mode) else None),
    "seek to the end": opened(os.O_RDONLY, lambda fd: os.lseek(fd, -3, os.SEEK_END) if stat.S_ISREG(os.fstat(fd).st_mode) else None),
    "seek data": opened(os.O_RDONLY, lambda fd: os.lseek(fd, 5, os.SEEK_DATA) if stat.S_ISREG(os.fstat(fd).st_mode) else None),
    "seek data beyond": opened(os.O_RDONLY, lambda fd: os.lseek(fd, 5000, os.SEEK_DATA) if stat.S_ISREG(os.fstat(fd).st_mode) else None),
    "mkdir": lambda path: os.mkdir(path, 0o750),
    "mkfifo": lambda path: os.mkfifo(path, 0o640),
    "rmdir": os.rmdir,
    "unlink": os.unlink,
    "symlink": lambda path: os.symlink("anywhere", path),
    "readlink": os.readlink,
    "list": lambda path: sorted(os.listdir(path)),
    "statvfs": lambda path: os.statvfs(path).f_namemax,
    "truncate to 0": lambda path: os.truncate(path, 0),
    "truncate down": lambda path: os.truncate(path, 3),
    "truncate up": lambda path: os.truncate(path, 300_000),
    "truncate below 0": lambda path: os.truncate(path, -1),
    "chmod 0": lambda path: os.chmod(path, 0),
    "chmod 7777": lambda path: os.chmod(path, 0o7777),
    "chown": lambda path: os.chown(path, 12, 34),
    "chown group": lambda path: os.chown(path, -1, 34),
    "chown to itself": lambda path: os.chown(path, -1, -1),
    "lchown": lambda path: os.lchown(path, 12, 34),
    "utime": lambda path: os.utime(path, (1, 2)),
    "utime now": os.utime,
    "access": lambda path: [os.access(path, how) for how in (os.F_OK, os.R_OK, os.W_OK, os.X_OK)],
}
TWO = {"rename": os.rename, "rename, keep": renamed(NO_REPLACE), "exchange": renamed(EXCHANGE),
       "link": lambda source, goal: os.link(source, goal, follow_symlinks=False)}


def outcome(call, paths, user):
    """The result, or the error; as root, or in a process of another user."""
    def attempt():
        try:
            return repr(call(*paths))
        except OSError as error:
            return errno.errorcode[error.errno]
    if user == 0:
        return attempt()
    ends = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
        os.write(ends[1], attempt().encode())
        os._exit(0)
    os.close(ends[1])
    with open(ends[0], "rb") as answer:
        text = answer.read().decode()
    os.waitpid(child, 0)
    return text


def exception_for(name, kinds):
    striped = [kind for kind in kinds if kind in STRIPED]
    if name == "link" and kinds[0] in STRIPED:
        return "link of a striped file"
    if name == "exchange" and striped and len({os.path.dirname(kind) for kind in kinds}) > 1:
        return "exchange with a striped file, across directories"
    return None


def judge(name, kinds, mine, theirs, worlds):
    """The errors of a case; empty if it passes."""
    known = exception_for(name, kinds)
    if known and not theirs.startswith("E"):
        return None if mine == errno.errorcode[EXCEPTIONS[known]] else f"{mine}, by exception {EXCEPTIONS[known]}"
    if mine != theirs:
        return f"{mine}, and {theirs} on the file system"
    if theirs.startswith("E"):
        return None
    seen, expected = (world.look() for world in worlds)
    if seen == expected:
        return None
    return "\n  " + "\n  ".join(f"{a}\n  {b}" for a, b in itertools.zip_longest(seen, expected) if a != b)


def cases():
    for name, call in ONE.items():
        for kind in KINDS:
            yield name, call, (kind,)
    for name, call in TWO.items():
        for kinds in itertools.product(KINDS, KINDS):
            yield name, call, kinds


def run(worlds, user, modes):
    dirty, count, problems = True, 0, []
    for name, call, kinds in cases():
        if dirty:
            for world in worlds:
                world.build(modes)
        mine, theirs = (outcome(call, [world.root / kind for kind in kinds], user) for world in worlds)
        wrong = judge(name, kinds, mine, theirs, worlds)
        count += 1
        dirty = wrong is not None or not theirs.startswith("E")
        if wrong:
            problems.append(wrong)
            print(f"user {user}: {name} {' '.join(kind[:20] for kind in kinds)}: {wrong}", flush=True)
    print(f"user {user}, {modes}: {count} cases, {len(problems)} otherwise", flush=True)
    return problems


def main():
    enter()
    compile_ranks()
    os.umask(0o022)
    for path in (pathlib.Path.cwd(), *pathlib.Path.cwd().parents):
        if not path.stat().st_mode & stat.S_IXOTH:
            print(f"skipped: other users may not enter {path}")
            sys.exit(77)
    problems = []
    with in_memory():
        (DIRECTORY / "pool").mkdir()
        make_striped(*(DIRECTORY / f"pool/{i}" for i in range(POOL)))
        with mounted("--allow-other"):
            worlds = (World(MOUNT / "world", True), World(DIRECTORY / "reference", False))
            problems += run(worlds, 0, {})
            for modes in ({}, {".": 0o777, "file": 0o666, "full": 0o777},
                          {".": 0o1777, "second": 0o600, "dir": 0o700}):
                problems += run(worlds, NOBODY, modes)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
