#!/usr/bin/env python3
# FLAVOURS: none
# TIMEOUT: 1200
# PROCESSORS: 2
"""64 clients make 10 000 small requests a second for ten minutes: no client starves, and the nodes' memory does not grow.

SHIMA_LOAD_S sets the seconds.
"""

import os
import pathlib
import subprocess
import sys
import time

SOURCE, BUILD = (pathlib.Path(os.environ[name]) for name in ("SHIMA_SOURCE_DIR", "SHIMA_BUILD_DIR"))
sys.path.insert(0, str(SOURCE / "tests"))
from iod_lib import nodes

CLIENTS, RATE, SECONDS = 64, 10_000, float(os.environ.get("SHIMA_LOAD_S", "600"))


def memory_kib(node):
    """What the node has in memory of its own: files do not count."""
    for line in pathlib.Path(f"/proc/{node.process.pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1])
    raise RuntimeError("no RssAnon")


sanitize = os.environ.get("SHIMA_SANITIZE")
subprocess.run(["cc", "-std=gnu11", "-O1", "-Wall", f"-I{SOURCE}/include", *([f"-fsanitize={sanitize.replace('+', ',')}"] if sanitize else []),
                "-o", "iod_load", SOURCE / "tests/soak/iod_load.c", f"-L{BUILD}/lib", f"-Wl,-rpath,{BUILD}/lib", "-lshima-pff"], check=True)
with nodes("ab") as running:
    load = subprocess.Popen(["./iod_load", ".", str(CLIENTS), str(RATE), str(SECONDS)])
    time.sleep(SECONDS * 0.3)
    early = [memory_kib(node) for node in running]
    time.sleep(SECONDS * 0.6)
    late = [memory_kib(node) for node in running]
    assert load.wait(timeout=SECONDS + 300) == 0, f"exit status {load.returncode}"
    print(f"memory of the nodes in KiB: {early}, then {late}")
    assert all(after <= before * 1.1 + 1024 for before, after in zip(early, late)), (early, late)
    ends = [node.end() for node in running]
    assert ends == [(0, "")] * 2, ends
