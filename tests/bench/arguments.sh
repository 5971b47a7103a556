#!/bin/bash
# The command line of `shima bench`: the list, the help, and what is refused.
# FLAVOURS: none
set -euo pipefail
# shellcheck source=tests/tool/common.sh
. "$SHIMA_SOURCE_DIR/tests/tool/common.sh"

expect_status 0 'list' "$SHIMA" bench list
for name in columns steps subgroup dsm delegate irregular scale; do expect_output "^$name " 'list'; done
expect_status 141 'a reader that left' python3 -c 'import os, subprocess, sys
end, pipe = os.pipe()
os.close(end)
sys.exit(subprocess.run([sys.argv[1], "bench", "list"], stdout=pipe).returncode)' "$SHIMA"
[ ! -s out ] || fail "a reader that left: $(cat out)"
expect_status 0 'help' "$SHIMA" bench --help
expect_output '--io-nodes' 'help'
expect_status 0 'overview' "$SHIMA" --help
expect_output '^  bench +Run the experiments' 'overview'

expect_refusal 'EXPERIMENT' 'no experiment' "$SHIMA" bench
expect_refusal "invalid choice: 'rows'" 'unknown experiment' "$SHIMA" bench rows
expect_refusal 'list: it stands alone' 'list and another' "$SHIMA" bench list columns
expect_refusal 'is no size' 'no size' "$SHIMA" bench columns --size lots
expect_refusal 'is no size' 'size 0' "$SHIMA" bench columns --size 0
expect_refusal 'no list of numbers' 'no ranks' "$SHIMA" bench columns --np 2,many
expect_refusal 'no number from 1' 'no repetitions' "$SHIMA" bench columns --reps 0
expect_refusal 'lam is no MPI' 'unknown MPI' "$SHIMA" bench columns --mpi mpich,lam
expect_refusal 'no launcher' 'no launcher' "$SHIMA" bench columns --mpiexec /bin/true
expect_refusal 'exclude each other' 'two ways to name MPIs' "$SHIMA" bench columns --mpi mpich --mpiexec /bin/true
expect_refusal 'only the experiment columns' 'disks without columns' "$SHIMA" bench steps --disks 2
expect_refusal 'no run to continue; leave' 'nothing to resume' "$SHIMA" bench columns --resume
[ ! -e shima-bench.jsonl ] || fail 'a refused run has left a file'
[ ! -d /dev/shm ] || expect_refusal 'in memory' 'files in memory' "$SHIMA" bench columns --size 1M --dir /dev/shm
mkdir -p empty
expect_refusal 'needs python3' 'no python' env PATH="$PWD/empty" "$SHIMA" bench list
finish
