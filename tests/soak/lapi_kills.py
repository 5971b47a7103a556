#!/usr/bin/env python3
# FLAVOURS: none
# TIMEOUT: 1800
# PROCESSORS: 2
# EVERYDAY: none
"""LAPI tasks that are killed at every step on every way (tests/lapi/kills.py)."""

import os
import sys

sys.path.insert(0, os.path.join(os.environ["SHIMA_SOURCE_DIR"], "tests/lapi"))
import kills

if __name__ == "__main__":
    sys.exit(kills.main(kills.product()))
