# Sourced by the tests of the command: checks, and the reports of their failures.
# shellcheck shell=bash

failures=0

fail() {
  echo "FAIL: $*" >&2
  failures=$((failures + 1))
}

# expect_status STATUS WHAT command...: writes the output to the file "out".
expect_status() {
  local want=$1 what=$2 got=0
  shift 2
  "$@" >out 2>&1 </dev/null || got=$?
  if [ "$got" != "$want" ]; then
    fail "$what: exit status $got instead of $want"
    cat out >&2
  fi
}

# expect_output REGEX WHAT: of the last command.
expect_output() {
  grep -qE -- "$1" out && return
  fail "$2: no '$1' in:"
  cat out >&2
}

# expect_refusal REGEX WHAT command...: status 2 and one line, "shima: thing: rule; advice".
expect_refusal() {
  local pattern=$1 what=$2
  shift 2
  expect_status 2 "$what" "$@"
  expect_output "$pattern" "$what"
  expect_output '^shima: [^:]+.*: .*; .*$' "$what"
  [ "$(wc -l <out)" = 1 ] || fail "$what: more than one line"
}

# eventually COMMAND...: retries it until it succeeds; fails after a minute, which is enough on a busy machine.
eventually() {
  local i
  for ((i = 0; i < 600; i++)); do
    "$@" && return
    sleep 0.1
  done
  return 1
}

# ranks_left: process IDs of this test's ranks; a launcher may have put them into separate sessions.
ranks_left() {
  local pid
  for pid in $(pgrep -x 'rank|shima-rank'); do
    [ "$(readlink "/proc/$pid/cwd")" != "$PWD" ] || echo "$pid"
  done
}

finish() {
  [ $failures = 0 ] && echo "all as expected"
  exit $((failures > 0))
}
