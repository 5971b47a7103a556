#!/usr/bin/env python3
# FLAVOURS: none
# TIMEOUT: 1800
# PROCESSORS: 2
# EVERYDAY: none
"""LAPI transfers of 1 GiB, and of 2.5 GiB (tests/lapi/sizes.py)."""

import os
import sys

sys.path.insert(0, os.path.join(os.environ["SHIMA_SOURCE_DIR"], "tests/lapi"))
import sizes

if __name__ == "__main__":
    sys.exit(sizes.main(((1024, 1024), (64, 2560)), guard_s=600))
