#!/usr/bin/env python3
# FLAVOURS: none
# TIMEOUT: 60
"""A master file that names another user's subfiles opens nothing through the mount and changes nothing.

Also while the other user has his file open, so that the subfiles have been opened already. And a file that is given to
another user stays one file for those who have it open.
"""
import fcntl
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["SHIMA_SOURCE_DIR"], "tests/tool"))
from mount_lib import DIRECTORY, MOUNT, SHIMA, enter, mounted, skip

VICTIM, ATTACKER = 12345, 23456
SECRET = b"secret bytes"
TARGET = pathlib.Path("target").absolute()


def as_user(user, call):
    """What `call` returns in a process of this user, or the name of the exception."""
    receiver, sender = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
        try:
            answer = str(call())
        except Exception as error:  # pylint: disable=broad-exception-caught
            answer = type(error).__name__
        os.write(sender, answer.encode())
        os._exit(0)
    os.close(sender)
    os.waitpid(pid, 0)
    with open(receiver, encoding="ascii") as answers:
        return answers.read()


def check(what, found, wanted):
    if found != wanted:
        sys.exit(f"{what}: {found}, not {wanted}")


def parts():
    return {part: (part.stat().st_uid, part.stat().st_gid, part.stat().st_mtime_ns) for part in TARGET.glob("[0-9a-f]*.*")}


def excludes(fd, path):
    """Whether a lock by `fd` excludes another opener of the path."""
    fcntl.flock(fd, fcntl.LOCK_EX)
    with open(path, "rb") as other:
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def check_forged(mine, forged):
    with open(mine, "rb") as kept:  # root's; the subfiles are open in the server
        before = parts()
        for what, call in (("read", forged.read_bytes), ("write", lambda: open(forged, "r+b").close()),
                           ("chgrp", lambda: os.chown(forged, -1, ATTACKER)), ("utime", lambda: os.utime(forged, (1, 1))),
                           ("truncate", lambda: os.truncate(forged, 1))):
            check(f"{what} through a forged master file", as_user(ATTACKER, call), "PermissionError")
        check("parts of the other file", parts(), before)
        check("owner of the file", os.fstat(kept.fileno()).st_uid, VICTIM)
        check("its bytes", as_user(VICTIM, mine.read_bytes), str(SECRET))
        check("what is open", kept.read(), SECRET)
    os.rename(forged, mine)  # two names of one id: nothing happens
    check("the file after mv of the other over it", mine.read_bytes(), SECRET)


def check_given(mine):
    with open(mine, "r+b") as kept:
        for owner in (0, VICTIM):
            os.chown(mine, owner, owner)
            check("owner of the open file", os.fstat(kept.fileno()).st_uid, owner)
            check("owner of its subfiles", {facts[0] for facts in parts().values()}, {owner})
            check("a lock of one that was open before", excludes(kept, mine), True)
            kept.seek(0)
            check("its bytes", kept.read(), SECRET)


def check_created(directory):
    (directory / ".shima-default").write_text("shima_targets=beside\nstriping_factor=2\n")
    new = directory / "new"
    check("a lock of the one who made the file", as_user(
        VICTIM, lambda: excludes(os.open(new, os.O_CREAT | os.O_RDWR, 0o644), new)), "True")
    check("kind of the file", (DIRECTORY / new.relative_to(MOUNT)).read_bytes()[:13], b"shima striped")


def main():
    enter()
    if os.geteuid() != 0:
        skip("needs root")
    os.umask(0o022)
    TARGET.mkdir()
    os.environ["SHIMA_TARGETS"] = f"t={TARGET}"
    DIRECTORY.mkdir()
    for user in (VICTIM, ATTACKER):
        (DIRECTORY / str(user)).mkdir()
        os.chown(DIRECTORY / str(user), user, user)
    mine, forged = MOUNT / f"{VICTIM}/mine", MOUNT / f"{ATTACKER}/forged"
    with mounted("--allow-other"):
        subprocess.run([SHIMA, "create", "--order", "t", DIRECTORY / f"{VICTIM}/mine"], check=True)
        os.chown(mine, VICTIM, VICTIM)
        os.chmod(mine, 0o600)
        mine.write_bytes(SECRET)
        there = DIRECTORY / f"{ATTACKER}/forged"
        there.write_bytes((DIRECTORY / f"{VICTIM}/mine").read_bytes())
        os.chown(there, ATTACKER, ATTACKER)
        check_forged(mine, forged)
        check_given(mine)
        check_created(MOUNT / str(VICTIM))


main()
