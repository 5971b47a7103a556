#!/bin/bash
# `shima pvas run`: which programs can be tasks, which are refused and why, and what tasks inherit.
# FLAVOURS: none
# TIMEOUT: 120
set -euo pipefail
# shellcheck source=tests/tool/common.sh
. "$SHIMA_SOURCE_DIR/tests/tool/common.sh"

task=$SHIMA_SOURCE_DIR/tests/pvas/task.c
cc -O1 -o task "$task" -lpthread
# shellcheck disable=SC2317  # expect_status calls it
pvas() { "$SHIMA" pvas run "$@"; }
# The live roots of this test; a root that has ended stays as a zombie until init waits for it.
export PVAS_RUN_TEST=$$
roots() {
  local pid
  for pid in $(pgrep -x pvas-root -r R,S,D); do
    grep -qsz "^PVAS_RUN_TEST=$$\$" "/proc/$pid/environ" && echo "$pid"
  done
  true
}

# Waits until both tasks of "wait" report.  The reports of an earlier job must be removed before the next job starts: it
# empties the file itself, but perhaps only after the first check.
# shellcheck disable=SC2317  # eventually calls these
{
  wait_as_many() { [ "$(grep -c waiting said)" = "$1" ]; }
  has_ended() { grep -qs '^State:.*Z' "/proc/$1/status" || ! kill -0 "$1" 2>/dev/null; }
  no_roots() { [ -z "$(roots)" ]; }
}
both_wait() { eventually wait_as_many 2 || fail "two tasks do not begin to wait: $(cat said)"; }

expect_status 0 'four tasks' pvas -n 4 ./task
[ "$(grep -c '^a task of process' out)" = 4 ] || fail "not four tasks: $(cat out)"
[ "$(sort -u out | wc -l)" = 4 ] || fail 'tasks share a process'
expect_status 0 'an ordinary process is no task' ./task
expect_output '^no task' 'an ordinary process'

expect_status 7 'exit code' pvas -n 2 ./task exit 7
expect_status 139 'a crash' pvas -n 2 ./task signal 11
expect_status 137 'a kill' pvas -n 2 ./task signal 9
expect_status 0 'much memory' pvas -n 2 ./task big
expect_status 9 'the first thread ends' pvas -n 2 ./task main-ends
[ "$(grep -c 'a thread goes on' out)" = 2 ] || fail 'a task ended with its first thread'
expect_status 0 'options of the program' pvas -- ./task say --help -n 3

# Kinds of programs.
if cc -static-pie -O1 -o static-task "$task" -lpthread 2>/dev/null; then
  expect_status 0 'static PIE' pvas -n 2 ./static-task
  expect_output '^a task' 'static PIE'
  expect_status 0 'static PIE and memory' pvas -n 2 ./static-task big
fi
if command -v musl-gcc >/dev/null && musl-gcc -O1 -fPIE -pie -o musl-task "$task" 2>/dev/null; then
  expect_status 0 'musl' pvas -n 2 ./musl-task
  expect_output '^a task' 'musl'
fi
cat >script.sh <<'SCRIPT'
#!/bin/bash -u
echo "script $0 with $1: $(./task exit 0 && echo child)"
exit 5
SCRIPT
cat >script.py <<'SCRIPT'
#!/usr/bin/env bash
echo "found by env: $0 $*"
SCRIPT
printf '#!/usr/bin/env -S bash -u\n' >script.env
chmod +x script.*
expect_status 5 'a script' pvas ./script.sh word
expect_output 'script ./script.sh with word: child' 'a script'
expect_status 0 'a script by env' pvas ./script.py a b
expect_output 'found by env: ./script.py a b' 'a script by env'

# A program sees itself, not its loader.
mkdir -p place/lib
echo 'int from_library(void) { return 12; }' >library.c
cc -shared -fPIC -o place/lib/libfrom.so library.c
echo 'int from_library(void); int main(void) { return from_library(); }' >main.c
# shellcheck disable=SC2016  # $ORIGIN is ld.so's
cc -o place/main main.c -Lplace/lib -lfrom -Wl,-rpath,'$ORIGIN/lib'
expect_status 12 "\$ORIGIN" pvas place/main
expect_status 0 '/proc/self/exe' pvas readlink /proc/self/exe
expect_output "^$(readlink -f "$(command -v readlink)")\$" '/proc/self/exe'

# Refusals name the program and the reason.
cc -no-pie -o fixed "$task" -lpthread
expect_refusal 'not position-independent' 'non-PIE' pvas ./fixed
cp task setuid-task
chmod u+s setuid-task
expect_refusal 'set-user-ID' 'setuid' pvas ./setuid-task
cp task foreign
printf '\xb7' | dd of=foreign bs=1 seek=18 conv=notrunc 2>/dev/null # e_machine: AArch64
expect_refusal 'not for this machine' 'another machine' pvas ./foreign
cc -o no-loader "$task" -lpthread -Wl,-dynamic-linker,/nowhere/ld.so
expect_refusal 'needs the loader /nowhere/ld.so, which does not exist or cannot be read' 'no loader' pvas ./no-loader
head -c 3000 task >torn
chmod +x torn
expect_refusal './torn' 'a torn file' pvas ./torn
expect_refusal 'env -S bash -u' 'env with options' pvas ./script.env
expect_refusal 'was not found in any directory of PATH' 'no such program' pvas no-such-program
expect_refusal 'no program was named' 'no program' pvas -n 2
printf '#!./script-loop\n' >script-loop
chmod +x script-loop
expect_refusal 'interpreter' 'a script of itself' pvas ./script-loop
if [ "$(id -u)" = 0 ] && command -v setcap >/dev/null; then
  cp task capable
  if setcap cap_net_raw+ep capable 2>/dev/null; then expect_refusal 'capabilities' 'capabilities' pvas ./capable; fi
fi

# Signals reach every task, and their statuses are returned.
for signal in USR1:21 TERM:22; do
  : >said
  "$SHIMA" pvas run -n 2 ./task wait >said 2>&1 </dev/null &
  job=$!
  both_wait
  kill "-${signal%:*}" $job
  status=0
  wait $job || status=$?
  [ $status = "${signal#*:}" ] || fail "${signal%:*}: exit status $status"
  [ "$(grep -c "got ${signal%:*}" said)" = 2 ] || fail "${signal%:*}: not all tasks got it: $(cat said)"
done

# With shima-tasks, a debugger knows the program's functions.
if command -v gdb >/dev/null; then
  cc -g -O0 -o debugged "$task" -lpthread
  : >said
  "$SHIMA" pvas run -n 2 ./debugged wait >said 2>&1 </dev/null &
  job=$!
  both_wait
  expect_status 0 'gdb' timeout 60 gdb -nx -batch -p "$(sed -n 's/^waiting //p' said | sed -n 2p)" \
    -ex "source $SHIMA_SOURCE_DIR/src/pvas/launch/shima-gdb.py" -ex shima-tasks -ex backtrace
  expect_output 'wait_for_signals \(\)' 'gdb'
  [ "$(grep -c '^task [01]: .*/debugged at 0x' out)" = 2 ] || fail "gdb: not both tasks: $(cat out)"
  kill -KILL $job
  wait $job 2>/dev/null || true
fi

# If a check of the self-test fails, the message names it, and ranks run as processes.
mkdir -p broken/bin broken/lib/shima
cp "$SHIMA" broken/bin/shima
cp "$(dirname "$SHIMA")/../lib/shima/pvas-root" broken/lib/shima/
cp "$(dirname "$SHIMA")"/../lib/shima/libshima-* broken/lib/shima/
printf '#include "pvas/root/inside/checks.h"\nint main(void) { return SHIMA_CHECK_BREAK; }\n' >probe.c
cc -I"$SHIMA_SOURCE_DIR/src" -o broken/lib/shima/pvas-probe probe.c
expect_refusal 'the program break does not stay' 'the self-test' broken/bin/shima pvas run ./task
expect_status 0 'falling back' broken/bin/shima exec --one-space --mpi openmpi ./task
expect_output 'runs as an ordinary process: .*the program break does not stay' 'falling back'
expect_output '^no task' 'falling back'

# If the process that started tasks is killed, its tasks end too.
: >said
"$SHIMA" pvas run -n 2 ./task wait >said 2>&1 </dev/null &
job=$!
both_wait
kill -KILL $job
wait $job 2>/dev/null || true
mapfile -t pids < <(sed -n 's/^waiting //p' said)
for pid in "${pids[@]}"; do
  eventually has_ended "$pid" || fail "task $pid goes on"
done

# No root remains.
: >said
"$SHIMA" pvas run ./task wait >said 2>&1 </dev/null &
job=$!
eventually wait_as_many 1 || fail "the task does not begin to wait: $(cat said)"
[ -n "$(roots)" ] || fail 'the roots are not found'
kill -TERM $job
wait $job || true
eventually no_roots || fail "a root stays: $(roots)"
finish
