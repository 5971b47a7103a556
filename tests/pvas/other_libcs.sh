#!/bin/bash
# Tasks with the libcs of other systems, side by side with this one's. SHIMA_OTHER_LIBCS names directories into which
# packages of libc were unpacked (dpkg -x libc6_*.deb DIRECTORY), separated by spaces.
# FLAVOURS: none
set -euo pipefail
# shellcheck source=tests/tool/common.sh
. "$SHIMA_SOURCE_DIR/tests/tool/common.sh"

if [ -z "${SHIMA_OTHER_LIBCS:-}" ]; then
  echo 'SHIMA_OTHER_LIBCS names no libcs'
  exit 77
fi

# build DIRECTORY SOURCE RESULT: a program that uses the libc in DIRECTORY.
build() {
  local loader directory
  loader=$(find "$1" -name 'ld-linux-x86-64.so.2' -type f | sed -n 1p)
  [ -n "$loader" ] || fail "no loader in $1"
  directory=$(dirname "$loader")
  cc -O1 -I"$SHIMA_SOURCE_DIR/src" -o "$3" "$2" -pie -Wl,-dynamic-linker,"$loader" -Wl,-rpath,"$directory"
}

number=0
for libc in $SHIMA_OTHER_LIBCS; do
  libc=$(realpath "$libc")
  number=$((number + 1))
  mkdir "$number"
  build "$libc" "$SHIMA_SOURCE_DIR/src/pvas/root/inside/probe.c" "$number/pvas-probe"
  build "$libc" "$SHIMA_SOURCE_DIR/tests/pvas/task.c" "$number/task"
  expect_status 0 "$libc: the self-test" "$SHIMA" pvas run "$PWD/$number/pvas-probe"
  expect_status 0 "$libc: two tasks" "$SHIMA" pvas run -n 2 "$number/task"
  [ "$(grep -c '^a task' out)" = 2 ] || fail "$libc: not two tasks"
  expect_status 0 "$libc: memory" "$SHIMA" pvas run -n 2 "$number/task" big
  expect_status 9 "$libc: threads" "$SHIMA" pvas run -n 2 "$number/task" main-ends
done

finish
