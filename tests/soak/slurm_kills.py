#!/usr/bin/env python3
# FLAVOURS: none
# TIMEOUT: 900
# PROCESSORS: 2
"""What tests/dse/slurm.py leaves out: every way to kill a job of `shima dse run` under Slurm, many times, and more programs of LAPI."""

import os
import sys

sys.path.insert(0, os.path.join(os.environ["SHIMA_SOURCE_DIR"], "tests/dse"))
from slurm import everything, main

if __name__ == "__main__":
    sys.exit(main(everything))
