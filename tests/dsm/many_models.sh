#!/bin/bash
# FLAVOURS: none
# TIMEOUT: 1800
# PROCESSORS: 2
# EVERYDAY: none
# A thousand random programs against the model (model.c): every way, one to four tasks, with and without shared memory.
set -euo pipefail
# shellcheck source=tests/tool/common.sh
. "$SHIMA_SOURCE_DIR/tests/tool/common.sh"
flags=(-g -O1 -I"$SHIMA_SOURCE_DIR/include" -L"$SHIMA_BUILD_DIR/lib" "-Wl,-rpath,$SHIMA_BUILD_DIR/lib")
[ -z "$SHIMA_SANITIZE" ] || flags+=("-fsanitize=${SHIMA_SANITIZE//+/,}")
cc -std=gnu11 "$SHIMA_SOURCE_DIR/tests/dsm/model.c" -o model "${flags[@]}" -lshima-dsm -pthread
for seed in {1..50}; do
  for way in 0 1 2 3 4; do
    for tasks in 1 2 3 4; do
      apart=()
      [ $(((seed + tasks) % 2)) = 0 ] || apart=(env SHIMA_DSM_APART=1)
      expect_status 0 "way $way, $tasks tasks, seed $seed" "$SHIMA" run --lapi -n $tasks "${apart[@]}" ./model $way 300 "$seed"
    done
  done
done
finish
