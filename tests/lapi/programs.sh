#!/bin/bash
# FLAVOURS: none
# TIMEOUT: 300
# The programs of this directory under `shima run --lapi`: one to four tasks, processes and tasks of one address space, compiled as
# C and as C++, linked with -llapi and with -llapi_r; and the job's launcher: exit codes, stdin, refusals, secrets.
set -euo pipefail
# shellcheck source=tests/tool/common.sh
. "$SHIMA_SOURCE_DIR/tests/tool/common.sh"
here=$SHIMA_SOURCE_DIR/tests/lapi
flags=(-g -O1 -Wall -Wextra -Werror -I"$SHIMA_SOURCE_DIR/include" -L"$SHIMA_BUILD_DIR/lib" "-Wl,-rpath,$SHIMA_BUILD_DIR/lib")
[ -z "$SHIMA_SANITIZE" ] || flags+=("-fsanitize=${SHIMA_SANITIZE//+/,}")
library=-llapi
for program in transfers messages progress loss terms one_core; do
  cc -std=gnu11 "$here/$program.c" -o $program "${flags[@]}" $library
  library=-llapi_r
done
echo '#include <lapi.h>
int main(void) { lapi_info_t info = {}; lapi_handle_t handle = 0; return LAPI_Init(&handle, &info) == LAPI_SUCCESS && LAPI_Term(handle) == LAPI_SUCCESS ? 0 : 1; }' >header.cpp
for standard in 98 11 20; do c++ -std=c++$standard -pedantic -Wno-long-long header.cpp -o header "${flags[@]}" -llapi; done

# run_all WAY... : with these options of shima run
run_all() {
  local what="$*"
  for tasks in 1 2 4; do
    expect_status 0 "transfers $what -n $tasks" "$SHIMA" run --lapi "$@" -n $tasks ./transfers
    expect_status 0 "messages $what -n $tasks" "$SHIMA" run --lapi "$@" -n $tasks ./messages
  done
  expect_status 0 "terms $what" "$SHIMA" run --lapi "$@" -n 2 ./terms
  [ -n "$SHIMA_SANITIZE" ] || expect_status 0 "progress $what" "$SHIMA" run --lapi "$@" -n 3 ./progress
  [ -n "$SHIMA_SANITIZE" ] || expect_status 0 "one core $what" "$SHIMA" run --lapi "$@" -n 2 ./one_core
  for where in computing sleeping waiting handler; do
    for tasks in 2 3; do
      expect_status 137 "loss $where $what -n $tasks" "$SHIMA" run --lapi "$@" -n $tasks ./loss $where
      [ "$(grep -c survives out)" = $((tasks - 1)) ] || fail "loss $where $what -n $tasks: not all survive"
    done
  done
}
run_all
[ -n "$SHIMA_SANITIZE" ] || SHIMA_ONE_SPACE=required run_all --one-space

expect_status 0 'C++' "$SHIMA" run --lapi -n 2 ./header
cat >seventh <<'SH'
#!/bin/sh
case $SHIMA_LAPI in *task=1\ *) exit 7;; esac
SH
cat >partly <<'SH'
#!/bin/sh
case $SHIMA_LAPI in *task=1\ *) exit 0;; esac
exec ./transfers
SH
chmod +x seventh partly
expect_status 7 'an exit code' "$SHIMA" run --lapi -n 3 ./seventh
echo word | "$SHIMA" run --lapi -n 2 cat >out
[ "$(cat out)" = word ] || fail "stdin: $(cat out)"
expect_status 1 'no launcher' ./header
expect_output 'start the program with .shima run --lapi -n TASKS program' 'no launcher'
expect_refusal 'only -n, --one-space, --transport, --trace, --html and --log go with it' 'options' "$SHIMA" run --lapi --stats -n 2 ./header
expect_refusal 'at most 1024 tasks' 'too many' "$SHIMA" run --lapi -n 1025 ./header
expect_refusal 'no such program|not found|cannot' 'no program' "$SHIMA" run --lapi -n 1 ./nothing

# A task that ends before LAPI_Init: the others learn it, and do not wait for it.
expect_status 1 'a task without LAPI_Init' timeout 60 "$SHIMA" run --lapi -n 2 ./partly
expect_output 'needs all tasks, but task 1 has left' 'a task without LAPI_Init'

exit $((failures > 0))
