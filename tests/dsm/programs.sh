#!/bin/bash
# FLAVOURS: none
# TIMEOUT: 300
# The programs of this directory under `shima run --lapi`: every way, one to four tasks, processes and tasks of one address space,
# and with tasks that do not share memory, as on different hosts; the header in C and C++; a process that is no task.
set -euo pipefail
# shellcheck source=tests/tool/common.sh
. "$SHIMA_SOURCE_DIR/tests/tool/common.sh"
here=$SHIMA_SOURCE_DIR/tests/dsm
flags=(-g -O1 -Wall -Wextra -Werror -I"$SHIMA_SOURCE_DIR/include" -L"$SHIMA_BUILD_DIR/lib" "-Wl,-rpath,$SHIMA_BUILD_DIR/lib")
[ -z "$SHIMA_SANITIZE" ] || flags+=("-fsanitize=${SHIMA_SANITIZE//+/,}")
for program in calls model loss order large; do
  cc -std=gnu11 "$here/$program.c" -o $program "${flags[@]}" -lshima-dsm -pthread
done
echo '#include <shima/dsm.h>
int main(void) { dsm* memory = 0; return dsm_open(0, &memory) == 0 && dsm_close(memory) == 0 ? 0 : 1; }' >header.c
cp header.c header.cpp
cc -std=c11 -pedantic -Wconversion header.c -o header "${flags[@]}" -lshima-dsm
for standard in 11 17 20; do c++ -std=c++$standard -pedantic header.cpp -o header "${flags[@]}" -lshima-dsm; done

names=(best lapi tcp 'tcp, spinning' udp)
ways=(0 1 2 3 4)
# ThreadSanitizer does not see that a barrier comes after what a server of sockets has stored: the order goes through other processes.
case $SHIMA_SANITIZE in *thread*) ways=(0 1) ;; esac
# run_all WHAT OPTION... : with these options of shima run
run_all() {
  local what=$1 way
  shift
  for way in "${ways[@]}"; do
    expect_status 0 "calls ${names[way]} $what" "$SHIMA" run --lapi "$@" -n 3 ./calls "$way"
    expect_status 0 "model ${names[way]} $what" "$SHIMA" run --lapi "$@" -n 2 ./model "$way" 400 "$RANDOM"
  done
}
run_all 'processes'
SHIMA_DSM_APART=1 run_all 'apart'
[ -n "$SHIMA_SANITIZE" ] || SHIMA_ONE_SPACE=required run_all 'one space' --one-space
for tasks in 1 2 4; do
  expect_status 0 "calls -n $tasks" "$SHIMA" run --lapi -n $tasks ./calls
  expect_status 0 "model -n $tasks" "$SHIMA" run --lapi -n $tasks ./model 0 2000 "$RANDOM"
done
for way in "${ways[@]}"; do
  expect_status 137 "kill, ${names[way]}" "$SHIMA" run --lapi -n 3 ./loss "$way" kill
  [ "$(grep -c survives out)" = 2 ] || fail "kill, ${names[way]}: not both survive: $(cat out)"
  expect_status 0 "exit, ${names[way]}" "$SHIMA" run --lapi -n 3 ./loss "$way" exit
  [ "$(grep -c survives out)" = 2 ] || fail "exit, ${names[way]}: not both survive: $(cat out)"
done
SHIMA_DSM_APART=1 expect_status 137 'kill, apart' "$SHIMA" run --lapi -n 3 ./loss 0 kill
[ "$(grep -c survives out)" = 2 ] || fail "kill, apart: not both survive: $(cat out)"
expect_status 0 'order' "$SHIMA" run --lapi -n 2 ./order 1

expect_status 0 'C++' "$SHIMA" run --lapi -n 2 ./header
expect_status 1 'no task' ./header
# A task that cannot donate memory: all fail, and say why.
cat >limited <<'SH'
#!/bin/sh
case $SHIMA_LAPI in *task=1\ *) ulimit -v 300000;; esac
exec ./big
SH
echo '#include <shima/dsm.h>
#include <stdio.h>
int main(void) {
  dsm* memory = 0;
  dsm_options options = {.size = (size_t)1 << 30};
  if (dsm_open(&options, &memory) == 0) return 0;
  return puts(dsm_error_message()) < 0 ? 1 : 3;
}' >big.c
cc -std=gnu11 big.c -o big "${flags[@]}" -lshima-dsm
chmod +x limited
if [ -z "$SHIMA_SANITIZE" ]; then
  expect_status 3 'a limit' "$SHIMA" run --lapi -n 2 ./limited
  expect_output 'task 1 has failed in donating memory' 'a limit'
  expect_status 0 'large' "$SHIMA" run --lapi -n 3 ./large
  SHIMA_DSM_APART=1 expect_status 0 'large, apart' "$SHIMA" run --lapi -n 3 ./large
fi
# Exports only the symbols of the interface.
if nm -D --defined-only "$SHIMA_BUILD_DIR/lib/libshima-dsm.so" | awk '{print $3}' | grep -v '^dsm_\|^SHIMA_DSM_0'; then
  fail "libshima-dsm.so shows symbols that are not in dsm.h"
fi
finish
