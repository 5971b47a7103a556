#!/bin/bash
# FLAVOURS: none
# TIMEOUT: 120
# PROCESSORS: 2
# The examples with lapi.h. The result of the stencil does not depend on the number of tasks.
set -euo pipefail
# shellcheck source=tests/tool/common.sh
. "$SHIMA_SOURCE_DIR/tests/tool/common.sh"
flags=(-O1 -Wall -Wextra -Werror -I"$SHIMA_SOURCE_DIR/include" -L"$SHIMA_BUILD_DIR/lib" "-Wl,-rpath,$SHIMA_BUILD_DIR/lib")
[ -z "$SHIMA_SANITIZE" ] || flags+=("-fsanitize=${SHIMA_SANITIZE//+/,}")
for example in ping_pong task_queue stencil; do
  cc -std=gnu11 "$SHIMA_SOURCE_DIR/examples/lapi_$example.c" -o $example "${flags[@]}" -llapi
done
expect_status 0 'ping-pong' "$SHIMA" run --lapi -n 2 ./ping_pong
expect_output '  262144 bytes' 'ping-pong'
for tasks in 1 3; do
  expect_status 0 'task queue' "$SHIMA" run --lapi -n $tasks ./task_queue
  expect_output '2000 pieces took 134100 steps' 'task queue'
  expect_status 0 'stencil' "$SHIMA" run --lapi -n $tasks ./stencil
  cp out stencil.$tasks
done
cmp stencil.1 stencil.3 || fail "stencil: $(cat stencil.1 stencil.3)"
finish
