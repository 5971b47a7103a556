#!/usr/bin/env python3
"""Checks the direction of every #include against the room table (docs/architecture.md).

Each directory of src/ is a room. A room includes only the rooms below it, so it can be understood, built and tested with
these alone. A large room has sub-rooms with an order of their own. Some system headers belong to one room each.
Prints file:line and the rule, and exits 1, if an include breaks a rule or a directory has too many files.
"""
import pathlib
import re
import sys

# The rooms that a room may include. The name of a room includes its sub-rooms.
CORE = ["base", "pattern", "layout", "observe"]
STORE = CORE + ["store"]
GROUP = ["base", "net", "pvas", "ipc", "group"]
ROOMS_BELOW = {
    "base": [],
    "base/copy": ["base"],
    "base/process": ["base"],
    "net": ["base"],
    "pattern": ["base"],
    "device": ["base", "audit", "pattern"],
    "layout": ["base", "pattern"],
    "observe": ["base"],
    "audit": ["base"],  # only headers that need no libc: it is linked without one
    "store/subfile": CORE + ["net"],
    "store/remote": ["base", "net", "store/subfile"],
    "store/target": CORE + ["store/subfile", "store/remote"],
    "store/striped": CORE + ["store/subfile", "store/target"],
    "store/check": CORE + ["store/subfile", "store/target", "store/striped"],
    "pvas/shared": ["base"],
    "pvas/task": ["base", "pvas/shared"],
    "pvas/launch": ["base", "pvas/shared"],
    "pvas/root/inside": ["base", "pvas/shared"],
    "pvas/root/loader": ["base", "pvas/shared", "pvas/root/inside"],
    "pvas/root/server": ["base", "pvas/shared", "pvas/root/inside", "pvas/root/loader"],
    "ipc": ["base", "observe", "pvas/shared", "pvas/task"],
    "lapi/stream": ["base", "net"],
    "lapi/ucx": ["base", "lapi/stream"],
    "lapi/way": ["base", "ipc", "net", "lapi/stream", "lapi/ucx"],
    "lapi": ["base", "observe", "ipc", "lapi/way"],
    "group/pointer": ["base", "ipc", "net"],
    "group/liveness": ["base", "net"],
    "group/node": ["base", "ipc", "group/liveness"],
    "group": ["base", "audit", "ipc", "net", "group/pointer", "group/liveness", "group/node"],
    "group/set": ["base", "net", "ipc", "group", "group/node"],
    "dsm": ["base", "ipc", "lapi"],
    "dsm/socket": ["base", "ipc", "lapi", "net", "dsm"],
    "dse/plan": ["base"],
    "dse": ["base", "net", "lapi/way", "dse/plan"],
    "delegate": ["base", "ipc", "pvas/shared", "pvas/task"],
    "collective/plan": ["base", "pattern", "layout", "group"],
    "collective/window": STORE + ["ipc", "group", "collective/plan"],
    "collective/io_node": STORE + ["net", "group", "collective/plan", "collective/window"],
    "collective": STORE + ["net", "ipc", "group", "collective/plan", "collective/window", "collective/io_node"],
    "independent": STORE + ["ipc", "group", "collective"],
    "file/hints": STORE + ["group", "collective"],
    "file": STORE + ["device", "ipc", "group", "collective", "independent", "file/hints"],
    "mpiio/mpi": ["base", "observe", "audit"],
    "mpiio/pnetcdf": ["base", "device", "store", "mpiio/mpi"],
    "mpiio/comm/introduction": ["base", "audit", "ipc", "group", "mpiio/mpi"],
    "mpiio/comm": ["base", "net", "observe", "audit", "ipc", "group", "file", "mpiio/mpi", "mpiio/comm/introduction"],
    "mpiio/datatype": ["base", "pattern", "mpiio/mpi", "mpiio/comm"],
    "mpiio/datarep": ["base", "pattern", "device", "file", "mpiio/mpi", "mpiio/comm", "mpiio/datatype"],
    "mpiio/file": ["base", "pattern", "group", "file", "mpiio/mpi", "mpiio/comm", "mpiio/datatype", "mpiio/datarep"],
    "mpiio/access": ["base", "observe", "pattern", "device", "file", "mpiio/mpi", "mpiio/comm", "mpiio/datatype", "mpiio/datarep", "mpiio/file"],
    "mpiio/entry": ["base", "observe", "audit", "pattern", "device", "store", "group", "file", "mpiio"],
    "capi": ["base"],
    "capi/pff": ["base", "net", "observe", "pattern", "layout", "store", "group", "file", "capi"],
    "capi/pvas": ["base", "pvas", "capi"],
    "capi/delegate": ["base", "pvas", "ipc", "delegate", "capi", "capi/pvas"],
    "capi/lapi": ["base", "observe", "ipc", "lapi", "capi"],
    "capi/dsm": ["base", "observe", "ipc", "net", "dsm", "capi"],
    "capi/dse": ["base", "dse", "capi"],
    "delegate_mpi": [],
    "fuse/tree": ["base", "layout", "store"],
    "fuse/calls": ["base", "layout", "store", "file", "fuse/tree"],
    "fuse/far": ["base", "layout", "store", "file", "fuse/tree", "fuse/calls"],
    "tool/bench": ["tool/common"],
    "tool/common": ["base"],
    "tool/files": ["base", "layout", "store", "file", "tool/common"],
    "iod/path": ["base", "store"],
    "iod": ["base", "net", "layout", "observe", "store", "group", "collective", "independent",
            "iod/path"],
    "tool/iod": ["base", "store", "iod", "tool/common"],
    "tool/launch": ["base", "audit", "pvas/shared", "pvas/launch", "net", "lapi/way", "tool/common"],
    "tool/dse": ["base", "net", "lapi/way", "dse", "tool/common"],
    "simulate": CORE + ["group", "collective/plan", "collective/window"],
    "tool/simulate": ["base", "file", "simulate", "tool/common"],
    "tool/top": ["base", "observe", "tool/common"],
    "tool/trace": ["base", "observe", "collective/plan", "tool/common", "tool/top"],
    "tool/report": ["base", "tool/common", "tool/launch"],
    "tool": ["base", "audit", "store", "file", "pvas/shared", "pvas/launch", "dse", "tool"],
}
# tool tests whether io_uring works on this machine.
OWNERS = {"mpi.h": ["mpiio", "delegate_mpi"], "liburing.h": ["store/subfile", "tool/report"], "CLI/CLI.hpp": ["tool"],
          "fuse3/fuse_lowlevel.h": ["fuse"], "hwloc.h": ["dse"], "ucp/api/ucp.h": ["lapi/ucx"]}
MOST_FILES = 24
SOURCES = (".h", ".cpp", ".c")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def holds(room, other):
    """Whether `other` is the room or one of its sub-rooms."""
    return other == room or other.startswith(room + "/")


def rule_broken(room, quote, header):
    """The rule that an include in a room breaks, or None."""
    owners = OWNERS.get(header)
    if owners and not any(holds(owner, room) for owner in owners):
        return f"only {', '.join(owners)} may include {header}"
    if quote == "<" or header.startswith("shima/"):
        return None
    if "/" not in header:
        return f'write the room: "{room}/{header}"'
    other = header.rpartition("/")[0]
    if other == room or any(holds(below, other) for below in ROOMS_BELOW[room]):
        return None
    if other not in ROOMS_BELOW:
        return f"there is no room {other}"
    return f"{room} may include {', '.join(ROOMS_BELOW[room]) or 'nothing'}, not {other}"


def check_file(path, room):
    broken = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        rule = rule_broken(room, *match.groups()) if match else None
        if rule:
            broken.append(f"{path}:{number}: {rule}")
    return broken


def check_directory(src, directory):
    files = sorted(path for path in directory.iterdir() if path.suffix in SOURCES)
    if not files:
        return []
    room = str(directory.relative_to(src))
    if room not in ROOMS_BELOW:
        return [f"{directory}: a new room: add the rooms below it to scripts/check_includes.py"]
    broken = [problem for path in files for problem in check_file(path, room)]
    if len(files) > MOST_FILES:
        broken.append(f"{directory}: {len(files)} files; a room has at most {MOST_FILES}: split it")
    return broken


def main():
    src = pathlib.Path(__file__).resolve().parent.parent / "src"
    directories = sorted(path for path in src.rglob("*") if path.is_dir())
    broken = [problem for directory in directories for problem in check_directory(src, directory)]
    print("\n".join(broken) or "include directions: as in the room table")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
