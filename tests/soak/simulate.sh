#!/bin/bash
# FLAVOURS: none
# TIMEOUT: 3600
# PROCESSORS: 2
# Planning keeps its limits up to 1 048 576 ranks, in each pattern and placement.
set -euo pipefail
for pattern in columns blocks irregular one_rank; do
  for placement in blocks round_robin; do
    echo "== $pattern, $placement"
    "$SHIMA" simulate --ranks 512,4096,32768,262144,1048576 --pattern $pattern --placement $placement --check
  done
done
