#!/usr/bin/env python3
# FLAVOURS: none
# TIMEOUT: 100
"""Unrelated processes rename, restripe, resize, check and read one striped file continuously: no process ever reads wrong
bytes or gets a report of damage, and no file is left behind."""

import ctypes
import os
import pathlib
import random
import subprocess
import sys
import threading
import time

SHIMA = os.environ["SHIMA"]
NAMES = ("d/f", "d/g", "e/h")
ORDERS = ("a,b", "beside", "a,beside,b", "beside,b")
SECONDS = 6
SIZE = 300_000
DATA = random.Random(1).randbytes(SIZE)


def shima(*words):
    return subprocess.run([SHIMA, *words], capture_output=True, timeout=60)


def said_only(done, *known):
    """The error output of a failed command, unless it contains one of the known errors; otherwise None."""
    return None if done.returncode == 0 or any(word in done.stderr for word in known) else done.stderr


def rename(dice):
    return said_only(shima("mv", *dice.sample(NAMES, 2)), b"no such file", b"in use")


def restripe(dice):
    # A subfile is missing if the file was moved away and back meanwhile.
    done = shima("restripe", "--stripe", f"unit={dice.randint(1, 50)}K", "--order", dice.choice(ORDERS), dice.choice(NAMES))
    return said_only(done, b"in use", b"no such file", b"is not a striped file", b"is missing")


def read(dice):
    done = shima("cat", dice.choice(NAMES))
    if done.returncode == 0:
        return None if done.stdout == DATA else f"{len(done.stdout)} bytes, not those written"
    return said_only(done, b"no such file")


def resize(dice):
    """Sets the current size again, which rewrites the master file."""
    pff = ctypes.CDLL(os.path.join(os.environ["SHIMA_BUILD_DIR"], "lib/libshima-pff.so"))
    pff.pff_error_message.restype = ctypes.c_char_p
    file = ctypes.c_void_p()
    if pff.pff_open(dice.choice(NAMES).encode(), 3, None, None, ctypes.byref(file)) != 0:
        return None if b"no such file" in pff.pff_error_message() else pff.pff_error_message()
    code = pff.pff_resize(file, ctypes.c_int64(SIZE))
    said = pff.pff_error_message() if code != 0 else None
    pff.pff_close(file)
    return said


def check(_):
    time.sleep(0.1)
    shima("fsck", "d", "e")


def main():
    os.environ["SHIMA_TARGETS"] = ":".join(f"{name}={pathlib.Path.cwd()}/t{name}" for name in "ab")
    for directory in ("ta", "tb", "d", "e"):
        os.mkdir(directory)
    pathlib.Path("data").write_bytes(DATA)
    assert shima("cp", "--stripe", "unit=10K", "--order", "a,beside,b", "data", "d/f").returncode == 0
    end, problems, counts = time.monotonic() + SECONDS, [], {}

    def again_and_again(action):
        dice = random.Random(action.__name__)
        while time.monotonic() < end and not problems:
            wrong = action(dice)
            counts[action.__name__] = counts.get(action.__name__, 0) + 1
            if wrong:
                problems.append(f"{action.__name__}: {wrong}")

    actions = [rename, restripe, read, check]
    if not os.environ["SHIMA_SANITIZE"]:  # Python cannot load sanitized libraries
        actions.append(resize)
    threads = [threading.Thread(target=again_and_again, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(counts)
    left = shima("fsck", "--repair", "d", "e")
    there = [name for name in NAMES if os.path.exists(name)]
    if left.returncode > 1 or len(there) != 1 or shima("cat", there[0]).stdout != DATA:
        problems.append(f"at the end: {there} {left.stdout}")
    print("\n".join(problems), file=sys.stderr)
    sys.exit(1 if problems or len(counts) < len(actions) else 0)


if __name__ == "__main__":
    main()
