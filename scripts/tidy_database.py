#!/usr/bin/env python3
"""The compilation database for clang-tidy: tidy_database.py BUILD DIRECTORY.

Writes DIRECTORY/compile_commands.json from BUILD's, and prints the sources below src/ in it, relative to the current
directory. It leaves out the precompiled headers, which are GCC's and would hide a missing include. clang-tidy checks a
source once per entry, so one that is compiled for each MPI has a single entry here, unless it has parts for some MPIs
only.
"""

import json
import os
import pathlib
import re
import sys

PRECOMPILED = re.compile(r" -Winvalid-pch| -include \S*cmake_pch\.h\w*")
DIFFERS = re.compile(r"#\s*(el)?if.*\b(SHIMA_MPI_|OPEN_MPI|OMPI_|MPI_[A-Z])")


def entries_for_tidy(entries):
    seen = set()
    for entry in entries:
        file = entry["file"]
        if file in seen and not DIFFERS.search(pathlib.Path(file).read_text()):
            continue
        seen.add(file)
        yield {**entry, "command": PRECOMPILED.sub("", entry["command"])}


def main(build, directory):
    entries = json.loads((pathlib.Path(build) / "compile_commands.json").read_text())
    kept = list(entries_for_tidy(entries))
    out = pathlib.Path(directory)
    out.mkdir(parents=True, exist_ok=True)
    (out / "compile_commands.json").write_text(json.dumps(kept, indent=1))
    here = os.getcwd() + "/"
    sources = {entry["file"].removeprefix(here) for entry in kept if entry["file"].startswith(here + "src/")}
    print("\n".join(sorted(sources)))


if __name__ == "__main__":
    main(*sys.argv[1:])
