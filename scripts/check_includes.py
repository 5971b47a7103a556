#!/usr/bin/env python3
"""The direction of every #include, against the house (docs/architecture.md).

Each folder of src/ is a room, and sees only the rooms below it: whatever a room includes, it can be understood, built
and tested with.  Three system headers belong to one room each, so that what they stand for has one place.
Prints file:line and the rule, and exits 1, where an include goes another way.
"""
import pathlib
import re
import sys

ROOMS_BELOW = {
    "base": [],
    "region": ["base"],
    "device": ["base", "region"],
    "layout": ["base", "region"],
    "store": ["base", "region", "layout", "observe"],
    "pvas": ["base"],
    "reach": ["base", "region", "pvas"],
    "delegate": ["base", "reach", "pvas"],
    "observe": ["base"],
    "collective": ["base", "region", "layout", "store", "reach", "observe"],
    "file": ["base", "region", "device", "layout", "store", "reach", "observe", "collective"],
    "mpiio": ["audit", "base", "region", "device", "layout", "store", "reach", "observe", "collective", "file"],
    "capi": ["base", "region", "device", "layout", "store", "reach", "observe", "collective", "file", "pvas",
             "delegate"],
    "fuse": ["base", "layout", "store", "file"],
    "audit": [],
    "tool": ["base", "audit", "layout", "store", "file", "pvas"],
}
# tool tries io_uring to say whether it works here.
OWNERS = {"mpi.h": ["mpiio"], "liburing.h": ["store", "tool"], "CLI/CLI.hpp": ["tool"],
          "fuse3/fuse_lowlevel.h": ["fuse"]}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def rule_broken(room, quote, header):
    """The rule that an include in a room breaks, or None."""
    if header in OWNERS and room not in OWNERS[header]:
        return f"{header} may be included in {', '.join(OWNERS[header])} only"
    if quote == "<":
        return None
    first = header.split("/")[0]
    if first == "shima" or first == room:
        return None
    if "/" not in header:
        return f'write the room: "{room}/{header}"'
    if first not in ROOMS_BELOW:
        return f"there is no room {first}"
    if first not in ROOMS_BELOW[room]:
        below = ", ".join(ROOMS_BELOW[room]) or "nothing"
        return f"{room} may include {below}, not {first}"
    return None


def check_file(path, room):
    complaints = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        rule = rule_broken(room, *match.groups()) if match else None
        if rule:
            complaints.append(f"{path}:{number}: {rule}")
    return complaints


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    complaints = []
    for folder in sorted((root / "src").iterdir()):
        if not folder.is_dir():
            continue
        if folder.name not in ROOMS_BELOW:
            complaints.append(f"{folder}: a new room: say in scripts/check_includes.py what is below it")
            continue
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".h", ".cpp", ".c"):
                complaints += check_file(path, folder.name)
    print("\n".join(complaints) or "include directions: as in the house")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
