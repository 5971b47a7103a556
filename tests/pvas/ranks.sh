#!/bin/bash
# `--one-space`: the ranks of a node are tasks of one space, without a difference for the launcher.
# TIMEOUT: 240
set -euo pipefail
# shellcheck source=tests/tool/common.sh
. "$SHIMA_SOURCE_DIR/tests/tool/common.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

"$MPICC" -o rank "$SHIMA_SOURCE_DIR/tests/pvas/rank.c"

expect_status 0 'four ranks' "$SHIMA" run --one-space -n 4 ./rank follow
expect_output 'all 4 ranks are tasks of one space' 'four ranks'
expect_status 0 'without' "$SHIMA" run -n 2 ./rank follow
expect_output '0 of 2 ranks are tasks' 'without'

expect_status 0 'inside a launcher' "$MPIEXEC" -n 1 "$SHIMA" exec --one-space ./rank follow
expect_output 'all 1 ranks are tasks of one space' 'inside a launcher'

expect_status 7 'exit code' "$SHIMA" run --one-space -n 2 ./rank exit 7
(echo hello; sleep 2) | "$SHIMA" run --one-space -n 2 ./rank read - >out 2>&1 || fail 'stdin: status'
expect_output 'stdin: hello' 'stdin'

# The job ends for the same reasons as an ordinary one, with the same status.
for how in abort crash; do
  plain=0
  "$SHIMA" run -n 2 ./rank $how >plain.out 2>&1 </dev/null || plain=$?
  [ $plain != 0 ] || fail "$how: the ordinary job ends well"
  expect_status $plain "$how" timeout 60 "$SHIMA" run --one-space -n 2 ./rank $how
done

# A script between the launcher and the rank does not separate the ranks.
printf '#!/bin/sh\n%q exec --one-space "$@"\n' "$SHIMA" >wrapper
chmod +x wrapper
expect_status 0 'a script between' "$MPIEXEC" -n 2 ./wrapper ./rank follow
expect_output 'all 2 ranks are tasks of one space' 'a script between'

# A program that cannot be a task runs as a process, and one rank reports the reason.
"$MPICC" -no-pie -o fixed "$SHIMA_SOURCE_DIR/tests/pvas/rank.c"
expect_status 0 'fallback' "$SHIMA" run --one-space -n 2 ./fixed follow
expect_output '0 of 2 ranks are tasks' 'fallback'
[ "$(grep -c 'shima: ./fixed runs as an ordinary process: .*not position-independent' out)" = 1 ] ||
  fail "fallback: not one line with the reason: $(cat out)"

expect_status 2 'required' env SHIMA_ONE_SPACE=required "$SHIMA" exec --one-space ./fixed follow
expect_output './fixed cannot be a task.*not position-independent' 'required'

# shellcheck disable=SC2317  # eventually calls it
a_stand_in() {
  local left
  for left in $(ranks_left); do
    if grep -q shima-rank "/proc/$left/comm"; then
      echo "$left"
      return 0
    fi
  done
}

# shellcheck disable=SC2317
no_rank() { [ -z "$(ranks_left)" ]; }
none_left() { eventually no_rank || fail "$1: ranks go on: $(ranks_left | tr '\n' ' ')"; }

trap '[ -z "${job:-}" ] || kill -TERM "$job" 2>/dev/null || true' EXIT
# shellcheck disable=SC2317  # eventually calls it
both_began() { grep -q 'rank 1 of 2' out && grep -q 'rank 0 of 2' out; }
start_sleepers() {
  "$SHIMA" run --one-space -n 2 ./rank sleep 300 >out 2>&1 </dev/null &
  job=$!
  eventually both_began || fail "the ranks do not begin: $(cat out)"
}

start_sleepers
kill -TERM $job
wait $job || true
none_left SIGTERM

# A stand-in may get its name after its rank has begun, so kill_one may have to be repeated.
# shellcheck disable=SC2317  # eventually calls it
kill_one() {
  local pid
  case $1 in
    pvas-root) pid=$(ps -o ppid= -p "$(sed -n 's/^rank 0 of 2 is process //p' out)") ;;
    rank) pid=$(sed -n 's/^rank 0 of 2 is process //p' out) ;;
    *) pid=$(a_stand_in) ;;
  esac
  [ -n "$pid" ] && kill -KILL "$pid" 2>/dev/null
}

# A stand-in, a task, or the root is killed: the job ends, and no process remains.
for victim in shima-rank rank pvas-root; do
  start_sleepers
  eventually kill_one "$victim" || fail "$victim: there is none to kill: $(cat out)"
  status=0
  timeout 60 tail --pid=$job -f /dev/null || fail "$victim: the job does not end"
  wait $job || status=$?
  [ $status != 0 ] || fail "$victim: killed, and the job ends well"
  none_left "$victim"
done
finish
