#!/usr/bin/env python3
# FLAVOURS: none
# TIMEOUT: 240
"""`shima mount` with I/O nodes: a directory of this machine whose files have targets on nodes, and a directory that a node serves.

Both show ordinary files: written, read back by others, mapped, truncated, renamed, removed while open, touched.
"""

import contextlib
import mmap
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


if not os.access("/dev/fuse", os.R_OK | os.W_OK) or not shutil.which("fusermount3"):
    print("skipped: FUSE is not available")
    sys.exit(SKIP)
pathlib.Path("plain").write_bytes(DATA)
pathlib.Path("other").write_bytes(os.urandom(200_000))
with nodes("ab") as running:
    pathlib.Path("local").mkdir()
    for place in ("local", running[0].path()):
        shima("create", "--stripe", "unit=4K,targets=2", "--default", place)
    with mounted("local", "local") as shown:
        check_files(shown, "local")
    with mounted(running[0].path(), "far") as shown:
        check_files(shown, running[0].path())
        check_plain(shown, running[0])
    assert all(not path.name.endswith(".0") for node in running for path in node.directory.iterdir())
