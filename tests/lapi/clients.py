#!/usr/bin/env python3
# FLAVOURS: none
# TIMEOUT: 240
"""Programs as others write them from the manual pages of LAPI (clients): one to four tasks on one host, in one address space
and over two hosts."""

import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ["SHIMA_SOURCE_DIR"], "tests/lapi"))
from jobs_lib import SOURCES, WAYS, command_of, compile_program, on_each_way

GUARD_S = 60
COUNTS = (1, 2, 3, 4)  # of tasks; a program runs with two of them on each way


def check(way, hosts, tasks, program):
    try:
        job = subprocess.run(command_of(way, hosts, tasks, [f"./{program}"]), capture_output=True, text=True, errors="replace",
                             timeout=GUARD_S, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as late:
        return [f"{program}, {way}, {tasks} tasks: does not end\n{(late.stderr or b'').decode(errors='replace')[-3000:]}"]
    return [] if job.returncode == 0 else [f"{program}, {way}, {tasks} tasks: {job.returncode}\n{(job.stdout + job.stderr)[-3000:]}"]


def main():
    sources = sorted(path.name for path in pathlib.Path(SOURCES, "tests/lapi/clients").iterdir() if path.suffix in (".c", ".cpp"))
    programs = [source.partition(".")[0] for source in sources]
    for source, program in zip(sources, programs):
        compile_program(f"clients/{source}", program)

    def problems_of(way, hosts):
        begun = time.monotonic()
        problems = []
        for number, program in enumerate(programs, WAYS.index(way)):
            for tasks in COUNTS[number % 4], COUNTS[(number + 2) % 4]:
                problems += check(way, hosts, tasks, program)
        print(f"{way}: {time.monotonic() - begun:.1f} s", flush=True)
        return problems

    return on_each_way(problems_of)


if __name__ == "__main__":
    sys.exit(main())
