#!/usr/bin/env python3
# FLAVOURS: none
# TIMEOUT: 240
"""`shima mount` with I/O nodes: a directory of this machine whose files have targets on nodes, and a directory that a node serves.

Both show ordinary files: written, read back by others, mapped, truncated, renamed, removed while open, touched. A mounted directory of
a node has symbolic links, which the node does not follow out of the directory. Appends through two mounts exclude each other.
"""

import contextlib
import errno
import fcntl
import mmap
import multiprocessing
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["SHIMA_SOURCE_DIR"], "tests"))
from iod_lib import SHIMA, nodes

SKIP = 77
DATA = os.urandom(300_000)


def shima(*words):
    ended = subprocess.run([SHIMA, *map(str, words)], capture_output=True, timeout=60, check=False)
    if ended.returncode != 0:
        sys.exit(f"shima {' '.join(map(str, words))}: exit status {ended.returncode}\n{ended.stderr.decode()}")
    return ended.stdout


@contextlib.contextmanager
def mounted(source, name):
    point = pathlib.Path(f"mount-{name}").absolute()
    point.mkdir()
    shima("mount", "--log-file", "mount.log", source, point)
    try:
        yield point
    finally:
        shima("umount", point)


def check_files(shown, place):
    """`shown`: the mounted directory; `place`: the same for commands. New files are striped."""
    file = shown / "file"
    shutil.copyfile("plain", file)
    assert shima("cat", f"{place}/file") == DATA
    assert b'"kind": "striped"' in shima("stat", "--json", f"{place}/file")
    assert file.read_bytes() == DATA and file.stat().st_size == len(DATA)
    with open(file, "r+b", buffering=0) as opened:
        before = opened.read(10)
        shima("cp", "other", f"{place}/file")  # of another size, by another client
        opened.seek(0)
        assert opened.read(10) != before, "what others have written is seen"
        with mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as view:
            assert view[:] == pathlib.Path("other").read_bytes()
        opened.seek(5)
        opened.write(b"12345")
        opened.truncate(1000)
    assert shima("cat", f"{place}/file") == (pathlib.Path("other").read_bytes()[:5] + b"12345" +
                                             pathlib.Path("other").read_bytes()[10:1000])
    with open(file, "ab") as opened:
        opened.write(b"end")
    assert file.stat().st_size == 1003
    os.utime(file, (1_000_000, 2_000_000))
    assert file.stat().st_mtime == 2_000_000
    file.chmod(0o640)
    assert file.stat().st_mode & 0o777 == 0o640
    (shown / "sub").mkdir()
    file.rename(shown / "sub" / "renamed")
    assert os.listdir(shown / "sub") == ["renamed"]
    with open(shown / "sub" / "renamed", "rb") as opened:
        os.unlink(opened.name)
        assert opened.read()[-3:] == b"end", "an open file that was removed can be read"
        assert os.fstat(opened.fileno()).st_size == 1003
    (shown / "sub").rmdir()
    assert [name for name in os.listdir(shown) if not name.startswith(".")] == []


def check_plain(shown, node):
    """A plain file on the node, and names that the mount hides."""
    (node.files / "there").write_bytes(DATA)
    assert (shown / "there").read_bytes() == DATA
    (shown / "there").unlink()
    assert not (node.files / "there").exists()
    try:
        (shown / ".shima").mkdir()
    except PermissionError:
        pass
    else:
        sys.exit(".shima can be made through the mount")


def check_refused(code, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except OSError as error:
        assert error.errno == code, f"{call.__name__}{arguments}: {error}"
    else:
        sys.exit(f"{call.__name__}{arguments} is not refused")


def check_links(shown, node):
    secret = pathlib.Path("secret").absolute()
    secret.write_text("secret")
    (shown / "sub").mkdir()
    (shown / "sub" / "file").write_bytes(DATA)
    for name, text in {"link": "sub/file", "sub/up": "../sub/file", "absolute": str(secret), "out": "../secret"}.items():
        os.symlink(text, shown / name)
        assert os.readlink(shown / name) == os.readlink(node.files / name) == text
    assert os.lstat(shown / "link").st_size == len("sub/file")
    for name in ("link", "sub/up"):
        assert (shown / name).read_bytes() == DATA == shima("cat", node.path(name))
    for name in ("absolute", "out"):  # the kernel follows links of a mount here, the node does not at its place
        ended = subprocess.run([SHIMA, "cat", node.path(name)], capture_output=True, text=True, timeout=60, check=False)
        assert ended.returncode == 1 and "leads out" in ended.stderr, ended
        os.utime(shown / name, (1_000_000, 2_000_000), follow_symlinks=False)
        assert os.lstat(shown / name).st_mtime == 2_000_000
    assert secret.stat().st_mtime > 2_000_000
    os.rename(shown / "link", shown / "other")
    assert (shown / "other").read_bytes() == DATA
    for name in ("other", "sub/up", "absolute", "out", "sub/file"):
        os.unlink(shown / name)
    assert secret.read_text() == "secret"
    (shown / "sub").rmdir()
    check_refused(errno.EPERM, os.symlink, "x", shown / ".shima")


def check_refusals(shown):
    file = shown / "file"
    file.write_bytes(b"0123456789")
    os.chown(file, os.getuid(), os.getgid())
    check_refused(errno.EPERM, os.chown, file, os.getuid() + 1, -1)
    check_refused(errno.EPERM, os.link, file, shown / "second")
    check_refused(errno.EPERM, os.mkfifo, shown / "fifo")
    check_refused(errno.ENOTSUP, os.setxattr, file, "user.x", b"value")
    check_refused(errno.ENOTSUP, os.getxattr, file, "user.x")
    with open(file, "r+b") as opened:
        os.posix_fallocate(opened.fileno(), 0, 5)
        assert os.fstat(opened.fileno()).st_size == 10
        os.posix_fallocate(opened.fileno(), 10_000, 5_000)
    assert file.read_bytes() == b"0123456789" + bytes(14_990)
    file.unlink()


RECORDS, RECORD_BYTES = 300, 5000


def append_records(path, letter, both):
    with open(path, "ab", buffering=0) as file:
        both.wait(60)
        for number in range(RECORDS):
            assert file.write(b"%c%04d" % (letter, number) * (RECORD_BYTES // 5)) == RECORD_BYTES


def check_held_append(source, running):
    """A process of the nodes' machine holds the lock of the file's appends."""
    os.environ["SHIMA_LOCK_TIMEOUT"] = "1"
    with mounted(source, "held") as shown:
        (shown / "log").write_bytes(b"first")
        subfile = next(path for node in running for path in node.directory.iterdir() if path.name.endswith(".0"))
        with open(subfile, "r+b") as held, open(shown / "log", "ab", buffering=0) as log:
            fcntl.lockf(held, fcntl.LOCK_EX, 1, 2**62 - 1)
            check_refused(errno.ETIMEDOUT, log.write, b"second")
            fcntl.lockf(held, fcntl.LOCK_UN, 1, 2**62 - 1)
            log.write(b"third")
        assert (shown / "log").read_bytes() == b"firstthird"
        (shown / "log").unlink()
    said = [line for line in pathlib.Path("mount.log").read_text().splitlines() if "appending" in line]
    assert len(said) == 1 and f"process {os.getpid()} (" in said[0] and "SHIMA_LOCK_TIMEOUT" in said[0], said
    del os.environ["SHIMA_LOCK_TIMEOUT"]


def check_appends(*mounts):
    (mounts[0] / "log").touch()
    both = multiprocessing.Barrier(2)
    writers = [multiprocessing.Process(target=append_records, args=(point / "log", letter, both))
               for point, letter in zip(mounts, b"ab")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
        assert writer.exitcode == 0
    data = (mounts[0] / "log").read_bytes()
    records = [data[at:at + RECORD_BYTES] for at in range(0, len(data), RECORD_BYTES)]
    broken = [number for number, record in enumerate(records) if record != record[:5] * (RECORD_BYTES // 5)]
    assert not broken, f"{len(broken)} of {len(records)} records: {broken[:5]}"
    for letter in b"ab":
        numbers = [int(record[1:5]) for record in records if record[0] == letter]
        assert numbers == list(range(RECORDS)), numbers
    (mounts[0] / "log").unlink()


if not os.access("/dev/fuse", os.R_OK | os.W_OK) or not shutil.which("fusermount3"):
    print("skipped: FUSE is not available")
    sys.exit(SKIP)
pathlib.Path("plain").write_bytes(DATA)
pathlib.Path("other").write_bytes(os.urandom(200_000))
with nodes("ab") as running:
    pathlib.Path("local").mkdir()
    for place in ("local", running[0].path()):
        shima("create", "--stripe", "unit=4K,targets=2", "--default", place)
    with mounted("local", "local") as shown, mounted("local", "local-2") as second:
        check_files(shown, "local")
        check_appends(shown, second)
    check_held_append("local", running)
    with mounted(running[0].path(), "far") as shown, mounted(running[0].path(), "far-2") as second:
        check_files(shown, running[0].path())
        check_plain(shown, running[0])
        check_links(shown, running[0])
        check_refusals(shown)
        check_appends(shown, second)
    assert all(not path.name.endswith(".0") for node in running for path in node.directory.iterdir())
