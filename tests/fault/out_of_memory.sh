#!/bin/bash
# The kernel's OOM killer kills all processes that share memory, that is the whole space. The process that waits for the
# tasks reports this, with the exit code of a killed program, and nothing is left.
# FLAVOURS: none
# TIMEOUT: 120
set -euo pipefail
# shellcheck source=tests/tool/common.sh
. "$SHIMA_SOURCE_DIR/tests/tool/common.sh"

# A memory cgroup of this test, below its current one.
make_group() {
  local path
  if path=$(grep -E '^[0-9]+:([^:]*,)?memory(,[^:]*)?:' /proc/self/cgroup | cut -d: -f3) && [ -n "$path" ]; then
    group=/sys/fs/cgroup/memory$path/shima-test-$$
    limit_file=memory.limit_in_bytes
  else
    group=/sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup)/shima-test-$$
    limit_file=memory.max
  fi
  mkdir "$group" 2>/dev/null && echo 96M 2>/dev/null >"$group/$limit_file"
}

make_group || {
  rmdir "$group" 2>/dev/null || true
  echo "no memory cgroup can be created here"
  exit 77
}
# shellcheck disable=SC2064
trap "sleep 0.2; rmdir '$group'" EXIT

cat >eat.c <<'EOF'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int count, char** arguments) {
  if (count == 2 && rmdir("turn") == 0) { /* one of them */
    FILE* members = fopen(arguments[1], "w");
    if (!members || fprintf(members, "%d", (int)getppid()) < 0 || fclose(members)) return 3;
    for (;;) memset(malloc(1 << 20), 1, 1 << 20);
  }
  pause();
}
EOF
cc -O1 -o eat eat.c
mkdir turn
# The space's memory is counted for its root, the parent of its tasks. Only the root enters the group: otherwise the
# killer may also choose the process that waits.
expect_status 137 'a space whose memory ran out' "$SHIMA" pvas run -n 3 ./eat "$group/cgroup.procs"
expect_output 'space was killed.*memory' 'a space whose memory ran out'
# shellcheck disable=SC2317  # eventually calls it
none_left() { [ -z "$(cat "$group/cgroup.procs")" ]; }
eventually none_left || fail "left: $(xargs ps -o pid,stat,args -p <"$group/cgroup.procs")"
finish
