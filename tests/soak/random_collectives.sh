#!/bin/bash
# FLAVOURS: none
# TIMEOUT: 3600
# PROCESSORS: 2
# Runs unit.collective with many more random patterns, members and nodes than in `make test`, by another seed each time.
set -euo pipefail
export SHIMA_ROUNDS=${SHIMA_ROUNDS:-1500} SHIMA_SEED=${SHIMA_SEED:-$RANDOM}
echo "SHIMA_SEED=$SHIMA_SEED"
exec "${SHIMA%/bin/shima}/tests/unit/unit.collective"
