#!/usr/bin/env python3
# FLAVOURS: none
"""Files whose master files are on an I/O node: all commands, from a process that has no access to the node's directories.

The commands see the directory by its place and by a path that SHIMA_PATHS maps to it. Nothing outside the directory can be
reached through it. Files are plain or striped over targets of nodes, also beside the master file.
"""

import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["SHIMA_SOURCE_DIR"], "tests"))
from iod_lib import SHIMA, nodes

DATA = os.urandom(300_000)


def shima(*words, code=0):
    ended = subprocess.run([SHIMA, *words], capture_output=True, timeout=60, check=False)
    if ended.returncode != code:
        sys.exit(f"shima {' '.join(words)}: exit status {ended.returncode}, not {code}\n{ended.stdout[-2000:]}{ended.stderr.decode()}")
    return ended.stdout if code == 0 else ended.stderr.decode()


def check_clean(node):
    """No file, and nothing left of any."""
    assert shima("fsck", node.path()) == b"0 striped files checked\n"
    parts = [path for path in [*node.directory.iterdir(), *node.files.glob("**/.shima/*")] if len(path.name.split(".")[0]) == 32]
    assert not parts, parts


def check_commands(node, other):
    striped, moved = node.path("striped"), node.path("sub/moved")
    shima("cp", "--stripe", "unit=4K,targets=2", "plain", striped)
    assert shima("cat", striped) == DATA
    described = json.loads(shima("stat", "--json", striped))[0]
    assert described["size"] == len(DATA) and [part["target"] for part in described["subfiles"]] == ["a", "b"], described
    assert "exists" in shima("create", striped, code=1)
    shima("restripe", "--stripe", "unit=16K,targets=3", "--order", "beside,b", striped)
    shima("fsck", node.path())
    (node.files / "sub").mkdir()
    shima("mv", striped, moved)
    shima("fsck", node.path())
    assert shima("cat", moved) == DATA
    assert len(list((node.files / "sub/.shima").glob("*.[0-9]"))) == 2, "the subfiles beside the file move with it"
    shima("cp", moved, node.path("copy"))
    shima("mv", node.path("copy"), moved)  # over a striped file
    assert shima("cat", moved) == DATA
    assert "EXDEV" in shima("mv", moved, "here", code=1)
    assert "EXDEV" in shima("mv", moved, other.path("there"), code=1)
    shima("rm", "-r", node.path("sub"))
    check_clean(node)


def check_plain(node):
    name = node.path("plain")
    shima("cp", "--plain", "plain", name)
    assert (node.files / "plain").read_bytes() == DATA
    assert shima("cat", name) == DATA
    shima("mv", name, node.path("renamed"))
    assert b"renamed" in shima("ls", node.path())
    shima("rm", node.path("renamed"))
    assert "ENOENT" in shima("cat", name, code=1)


def check_map(node):
    os.environ["SHIMA_PATHS"] = f"/nowhere={node.path('none')}:/nowhere/shared={node.path()}"
    shima("create", "--stripe", "unit=64K,targets=2", "/nowhere/shared/./mapped")
    assert (node.files / "mapped").exists()
    assert b" /nowhere" not in shima("ls", "/nowhere/shared")
    shima("rm", "/nowhere/shared/mapped")
    os.environ["SHIMA_PATHS"] = "/nowhere=/elsewhere"
    assert "SHIMA_PATHS" in shima("ls", "/nowhere", code=2)
    del os.environ["SHIMA_PATHS"]


def check_default(node):
    shima("create", "--stripe", "unit=8K,targets=1", "--order", "b", "--default", node.path())
    shima("cp", "plain", node.path("new"))
    assert b'"kind": "striped"' in shima("stat", "--json", node.path("new"))
    shima("rm", node.path("new"), node.path(".shima-default"))


def check_confined(node):
    """Links and paths that lead out are refused; links that stay inside are followed."""
    secret = pathlib.Path("secret").absolute()
    secret.write_text("secret")
    (node.files / "absolute").symlink_to(secret)
    (node.files / "relative").symlink_to("../secret")
    (node.files / "up").symlink_to("..")
    for name in ("absolute", "relative", "up/secret", "../secret", "x/../../secret"):
        for command in (["cat"], ["cp", "plain"]):
            shima(*command, node.path(name), code=1)
    shima("mv", node.path("absolute"), node.path("../moved"), code=1)
    assert secret.read_text() == "secret" and not pathlib.Path("moved").exists()
    for name in ("absolute", "relative", "up"):
        shima("rm", node.path(name))
    assert secret.exists()
    shima("cp", "--stripe", "unit=4K,targets=1", "plain", node.path("inside"))
    (node.files / "link").symlink_to("inside")
    assert shima("cat", node.path("link")) == DATA
    shima("rm", node.path("link"))
    assert shima("cat", node.path("inside")) == DATA
    shima("rm", node.path("inside"))


def check_seen_locally(node):
    """A process of the node's machine sees the same files by their local paths."""
    shima("cp", "--stripe", "unit=4K,targets=2", "plain", node.path("both"))
    assert shima("cat", str(node.files / "both")) == DATA
    shima("fsck", str(node.files))
    shima("rm", str(node.files / "both"))
    check_clean(node)


pathlib.Path("plain").write_bytes(DATA)
with nodes("ab") as running:
    check_commands(*running)
    check_plain(running[0])
    check_map(running[0])
    check_default(running[0])
    check_confined(running[0])
    check_seen_locally(running[0])
    check_clean(running[0])
    assert [node.end() for node in running] == [(0, "")] * 2
