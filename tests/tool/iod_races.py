#!/usr/bin/env python3
# FLAVOURS: none
# TIMEOUT: 240
# PROCESSORS: 2
"""Clients that change files of one served directory at the same time, some by its place and some by its local path.

Afterwards fsck finds nothing wrong, each file that exists can be read whole, and no part belongs to no file. A restripe is
refused while another client has the file open for writing, and one of a file on nodes gives the same bytes. A client that
is killed in the middle leaves at most what fsck repairs.
"""

import ctypes
import os
import pathlib
import random
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ["SHIMA_SOURCE_DIR"], "tests"))
from iod_lib import SHIMA, nodes

BUILD = pathlib.Path(os.environ["SHIMA_BUILD_DIR"])
CLIENTS, STEPS, NAMES = 4, 25, ["one", "two", "sub/three", "sub/four"]
PFF_READ, PFF_WRITE = 1, 2


def shima(*words, check=True):
    ended = subprocess.run([SHIMA, *map(str, words)], capture_output=True, text=True, errors="replace", timeout=100, check=False)
    if check and ended.returncode != 0:
        sys.exit(f"shima {' '.join(map(str, words))}: exit status {ended.returncode}\n{ended.stdout}{ended.stderr}")
    return ended


def client(seed, place):
    """Random changes; all errors are those of files that others have removed or created meanwhile."""
    dice = random.Random(seed)
    allowed = ("ENOENT", "EEXIST", "no such file", "exists", "replaced", "same file", "in use", "not a striped file")
    for _ in range(STEPS):
        one, other = (f"{place}/{name}" for name in dice.sample(NAMES, 2))
        kind = dice.choice(["create", "mv", "rm", "cp", "cat"])
        words = {"create": ["create", "--stripe", "unit=4K,targets=2", "--order", dice.choice(["a,b", "beside,a"]), one],
                 "mv": ["mv", one, other], "rm": ["rm", one], "cat": ["cat", one],
                 "cp": ["cp", "--stripe", "unit=4K,targets=2", "plain", one]}[kind]
        ended = subprocess.run([SHIMA, *words], capture_output=True, timeout=100, check=False)
        said = ended.stderr.decode()
        if ended.returncode != 0 and not any(word in said for word in allowed):
            print(f"{' '.join(words)}: {ended.returncode} {said}", file=sys.stderr)
            os._exit(1)
    os._exit(0)


def check_clean(node):
    checked = shima("fsck", node.path(), check=False)
    problems = [line for line in checked.stdout.splitlines() if ": note: " not in line][:-1]
    assert not problems, checked.stdout + checked.stderr


def check_changes(node):
    (node.files / "sub").mkdir()
    children = []
    for index in range(CLIENTS):
        child = os.fork()
        if child == 0:
            client(index, node.path() if index % 2 == 0 else node.files)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * CLIENTS
    check_clean(node)
    for name in NAMES:
        if (node.files / name).exists():
            shima("cat", node.path(name))
            shima("rm", node.path(name))
    check_clean(node)


def check_restripe(node):
    pff = ctypes.CDLL(BUILD / "lib/libshima-pff.so")
    name = node.path("one")
    shima("cp", "--stripe", "unit=4K,targets=2", "--order", "a,b", "plain", name)
    opened = ctypes.c_void_p()
    assert pff.pff_open(name.encode(), PFF_READ | PFF_WRITE, None, None, ctypes.byref(opened)) == 0
    refused = shima("restripe", "--stripe", "unit=64K,targets=2", name, check=False)
    assert refused.returncode != 0 and "open for writing" in refused.stderr, refused
    assert pff.pff_close(opened) == 0
    shima("restripe", "--stripe", "unit=64K,targets=2", "--order", "b,beside", name)
    assert subprocess.run([SHIMA, "cat", name], check=True, capture_output=True).stdout == pathlib.Path("plain").read_bytes()
    shima("rm", name)
    check_clean(node)


def check_kills(node):
    """Whatever a killed client has left, the next one finishes it or fsck repairs it."""
    dice = random.Random(7)
    for attempt in range(12):
        shima("cp", "--stripe", "unit=4K,targets=3", "--order", "beside,a,b", "plain", node.path("one"))
        words = dice.choice([["mv", node.path("one"), node.path("sub/four")], ["rm", node.path("one")],
                             ["restripe", "--stripe", "unit=8K,targets=2", "--order", "a,b", node.path("one")]])
        killed = subprocess.Popen([SHIMA, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(dice.uniform(0.005, 0.06))
        killed.kill()
        killed.wait()
        shima("fsck", "--repair", "--remove-orphans", node.path(), check=False)
        standing = [name for name in ("one", "sub/four") if (node.files / name).exists()]
        assert len(standing) <= 1, (attempt, words)
        for name in standing:
            shown = subprocess.run([SHIMA, "cat", node.path(name)], check=True, capture_output=True).stdout
            assert shown == pathlib.Path("plain").read_bytes(), (attempt, words)
            shima("restripe", "--abandon", node.path(name), check=False)
            shima("rm", node.path(name))
        check_clean(node)


pathlib.Path("plain").write_bytes(os.urandom(50_000))
with nodes("ab") as running:
    check_changes(running[0])
    check_restripe(running[0])
    check_kills(running[0])
