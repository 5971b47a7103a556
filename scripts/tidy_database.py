#!/usr/bin/env python3
"""The compilation database for clang-tidy: tidy_database.py BUILD DIRECTORY.

Writes DIRECTORY/compile_commands.json from BUILD's, and prints the sources below src/ in it, relative to the current
directory. Without precompiled headers, which are GCC's and would hide a missing
include. A source that is compiled once per MPI is in it once, as clang-tidy would check it once per entry; but all
entries stay of one that has parts for some MPIs only.
"""

import json
import os
import pathlib
import re
import sys

PRECOMPILED = re.compile(r" -Winvalid-pch| -include \S*cmake_pch\.h\w*")
DIFFERS = re.compile(r"#\s*if.*\b(SHIMA_MPI_|MPI_ABI)")


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
