#!/bin/bash
# FLAVOURS: mpich-wheel
# TIMEOUT: 240
# PROCESSORS: 2
# A rank that runs out of memory while ranks of several hosts tell each other of their caches, at the open of a file,
# takes part in the exchange all the same. Runs tests/fault/inject_calls.py over two hosts for this operation, with every
# site.
set -euo pipefail
SHIMA_INJECT_STRIDE=1 SHIMA_INJECT_REACH=two exec python3 "$SHIMA_SOURCE_DIR/tests/fault/inject_calls.py" "first open"
