#!/bin/bash
# Delegated messages, puts, collective calls and collective file access: two ranks, each with three requesters that know
# no MPI.
# TIMEOUT: 240
set -euo pipefail
# shellcheck source=tests/tool/common.sh
. "$SHIMA_SOURCE_DIR/tests/tool/common.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 SHIMA_ONE_SPACE=required

library=("-I$SHIMA_SOURCE_DIR/include" "-L$SHIMA_BUILD_DIR/lib" "-Wl,-rpath,$SHIMA_BUILD_DIR/lib" -lshima-pvas)
sources=$SHIMA_SOURCE_DIR/tests/pvas
"$MPICC" -std=gnu11 -O1 -g -Wall -Wextra -Werror -o delegatee "$sources/delegate_net.c" "${library[@]}" "-lshima-delegate-$MPI_FAMILY"
cc -std=gnu11 -O1 -g -Wall -Wextra -o requester "$sources/delegate_net_task.c" "${library[@]}"
seed=$((RANDOM * 32768 + RANDOM))
echo "seed $seed"

# WHAT ROUNDS RANKS MEMBERS
while read -r what rounds ranks members; do
  rm -f all.dat
  expect_status 0 "$what, $ranks x $members, seed $seed" \
    timeout 60 "$SHIMA" run --one-space --mpiexec "$MPIEXEC" -n "$ranks" ./delegatee ./requester "$members" "$what" "$rounds" $seed
  if grep -q 'requester .* line' out; then fail "$what: $(cat out)"; fi
done <<'END'
messages 60 2 3
messages 20 1 5
put 15 2 3
collectives 30 2 3
collectives 10 3 2
files 30 2 3
overlaps 10 2 3
kill 1 2 3
END
finish
