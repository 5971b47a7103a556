#!/bin/bash
# FLAVOURS: none
# TIMEOUT: 3600
# PROCESSORS: 2
# Planning keeps its limits up to 1 048 576 ranks, in each pattern and placement. Times of less than a microsecond are among
# the figures, which other programs disturb: a limit must be kept in one of three runs.
set -euo pipefail
for pattern in columns blocks irregular one_rank; do
  for placement in blocks round_robin; do
    for run in 1 2 3; do
      echo "== $pattern, $placement, run $run"
      "$SHIMA" simulate --ranks 512,4096,32768,262144,1048576 --pattern $pattern --placement $placement --check && break
      [ $run -lt 3 ]
    done
  done
done
