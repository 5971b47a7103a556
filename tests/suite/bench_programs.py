#!/usr/bin/env python3
# FLAVOURS: none
"""The benchmark's programs compile with every MPI: `make bench` runs rarely, and its programs use the public headers."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(os.environ["SHIMA_SOURCE_DIR"])
sys.path.insert(0, str(ROOT / "bench"))
from lib.programs import PLAIN, SOURCES, compile_command
from lib.subjects import find_flavours


def main():
    failed = []
    flavours = find_flavours()
    for program in SOURCES:
        for flavour in [None] if program in PLAIN else flavours:
            command = [*compile_command(program, flavour), "-fsyntax-only", "-O0"]
            done = subprocess.run(command, capture_output=True, text=True, env=flavour.environment() if flavour else None)
            if done.returncode:
                failed.append(program)
                print(f"{' '.join(command)}\n{done.stderr}")
    return 1 if failed or not flavours else 0


if __name__ == "__main__":
    sys.exit(main())
