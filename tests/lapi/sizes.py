#!/usr/bin/env python3
# FLAVOURS: none
# TIMEOUT: 240
"""Transfers of every size up to 64 MiB between two tasks: copied between processes, by pointers in one address space, and by
TCP between hosts."""

import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ["SHIMA_SOURCE_DIR"], "tests/lapi"))
from jobs_lib import command_of, compile_program, on_each_way


def main(sizes_mib=((64, 64),), guard_s=120):
    """Each pair: memory, and the longest transfer."""
    compile_program("sizes.c", "sizes")

    def problems_of(way, hosts):
        problems = []
        for memory, most in sizes_mib:
            begun = time.monotonic()
            job = subprocess.run(command_of(way, hosts, 2, ["./sizes", str(memory), str(most)]), capture_output=True, text=True,
                                 timeout=guard_s, stdin=subprocess.DEVNULL)
            print(f"{way}, {most} MiB: {job.returncode}, {time.monotonic() - begun:.1f} s", flush=True)
            if job.returncode != 0:
                problems.append(f"{way}, {most} MiB: {job.returncode}\n{(job.stdout + job.stderr)[-3000:]}")
        return problems

    return on_each_way(problems_of)


if __name__ == "__main__":
    sys.exit(main())
