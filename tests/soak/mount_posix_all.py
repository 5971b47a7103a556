#!/usr/bin/env python3
# TIMEOUT: 1800
# FLAVOURS: mpich-wheel
"""tool/mount_posix.py with every pair of objects."""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(os.environ["SHIMA_SOURCE_DIR"]) / "tests" / "tool"))
import mount_posix

if __name__ == "__main__":
    mount_posix.SHARE_OF_PAIRS = 1
    mount_posix.main()
