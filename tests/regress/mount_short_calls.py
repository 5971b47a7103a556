#!/usr/bin/env python3
# FLAVOURS: none
# TIMEOUT: 60
"""The mount reports system calls that fail or move nothing, and changes the owner only of the file that it has created.

mount_short_calls.c is preloaded into the mount: pwritev2 writes nothing, dup has no descriptor left, a file system like
NFS cannot send written data, and a user who may rename in the directory replaces a new file by a link to root's file.
"""
import contextlib
import errno
import os
import pathlib
import signal
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.environ["SHIMA_SOURCE_DIR"], "tests/tool"))
from mount_lib import DIRECTORY, MOUNT, SHIMA, SOURCE, enter, skip

OTHER_USER = 12345


def errno_of(call):
    try:
        call()
    except OSError as error:
        return error.errno
    return 0


def check(what, found, wanted):
    if found != wanted:
        sys.exit(f"{what}: {found}, not {wanted}")


def check_writes():
    fd = os.open(MOUNT / "plain", os.O_RDWR | os.O_CREAT)
    check("a write that moves nothing", errno_of(lambda: os.write(fd, b"bytes")), errno.EIO)
    check("a flush without descriptors", errno_of(lambda: os.close(fd)), errno.EMFILE)


def check_late_errors():
    fd = os.open(MOUNT / "striped", os.O_RDWR)
    check("a write that is sent later", os.write(fd, b"bytes"), 5)
    check("a close that cannot send it", errno_of(lambda: os.close(fd)), errno.ENOSPC)


def check_owner(victim):
    made = subprocess.run(["mkfifo", MOUNT / "new"], user=OTHER_USER, group=OTHER_USER, capture_output=True, check=False)
    check("owner of the file that replaced a new one", os.stat(victim).st_uid, 0)
    check("success for a file that is another one", made.returncode == 0, False)


def server_of_mount():
    """The server that this test has started: the one with this test's mount point."""
    for directory in pathlib.Path("/proc").iterdir():
        try:
            words = (directory / "cmdline").read_bytes().split(b"\0") if directory.name.isdigit() else []
        except OSError:
            continue
        if words and words[0].endswith(b"shima-fuse") and os.fsencode(MOUNT) in words:
            return int(directory.name)
    return sys.exit("the server of the mount was not found")


@contextlib.contextmanager
def limited(server, seconds):
    """Kills the server after the time limit, so that calls that wait for it end."""
    timer = threading.Timer(seconds, os.kill, (server, signal.SIGKILL))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def main():
    enter()
    if os.geteuid() != 0:
        skip("needs root")
    shim, victim = pathlib.Path("shim.so").absolute(), pathlib.Path("victim").absolute()
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", shim, SOURCE / "tests/regress/mount_short_calls.c", "-ldl"],
                   check=True)
    os.mkfifo(victim)
    for directory in (DIRECTORY, MOUNT):
        directory.mkdir(exist_ok=True)
        directory.chmod(0o777)
    subprocess.run([SHIMA, "create", "--stripe", "unit=4K,targets=2,order=beside", DIRECTORY / "striped"], check=True)
    env = dict(os.environ, LD_PRELOAD=str(shim), SHIMA_TEST_VICTIM=str(victim))
    subprocess.run([SHIMA, "mount", "--allow-other", "--log-file", "mount.log", DIRECTORY, MOUNT], check=True, env=env,
                   timeout=20)
    try:
        with limited(server_of_mount(), 15):
            check_writes()
            check_late_errors()
            check_owner(victim)
    finally:
        subprocess.run(["umount", "-l", MOUNT], check=False)


main()
