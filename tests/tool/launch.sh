#!/bin/bash
# What `shima run` and `shima exec` pass through: ranks, exit codes, stdin, signals, settings, and preloaded libraries.
set -euo pipefail
# shellcheck source=tests/tool/common.sh
. "$SHIMA_SOURCE_DIR/tests/tool/common.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

"$MPICC" -o rank "$SHIMA_SOURCE_DIR/tests/tool/rank.c"

expect_status 0 'three ranks' "$SHIMA" run -n 3 ./rank
for rank in 0 1 2; do
  expect_output "rank $rank of 3" 'three ranks'
  expect_output "rank $rank has libshima-$MPI_FAMILY" 'three ranks'
done

expect_status 7 'exit code' "$SHIMA" run -n 2 ./rank exit 7
expect_status 7 'exit code with --stats' "$SHIMA" run -n 2 --stats ./rank exit 7
expect_output 'shima: statistics' 'report'
expect_status 0 "the program's own options" "$SHIMA" run -n 1 -- ./rank --stats --help

# The pipe stays open: some versions of Open MPI do not pass on its end.
(echo hello; sleep 2) | "$SHIMA" run -n 2 ./rank read - >out 2>&1 || fail 'stdin: status'
expect_output 'stdin: hello' 'stdin'

expect_status 0 'hints' env SHIMA_HINTS=a=b "$SHIMA" run -n 1 --hint cb_nodes=2 --hint c=d ./rank getenv SHIMA_HINTS
expect_output 'SHIMA_HINTS=a=b;cb_nodes=2;c=d$' 'hints'
expect_status 0 'log' "$SHIMA" run -n 1 --log warn ./rank getenv SHIMA_LOG
expect_output 'SHIMA_LOG=warn$' 'log'

# PnetCDF's own driver would bypass Shima; other hints, and a driver that the user chose, are kept.
for starter in 'run -n 1' exec; do
  # shellcheck disable=SC2086
  expect_status 0 'PnetCDF' "$SHIMA" $starter --log info ./rank getenv PNETCDF_HINTS
  expect_output 'PNETCDF_HINTS=nc_driver=mpiio$' 'PnetCDF'
  expect_output 'info: PNETCDF_HINTS: nc_driver=mpiio is added' 'PnetCDF: log'
  # shellcheck disable=SC2086
  expect_status 0 'PnetCDF hints' env PNETCDF_HINTS='nc_header_align_size=512;romio_no_indep_rw=true' \
    "$SHIMA" $starter ./rank getenv PNETCDF_HINTS
  expect_output 'PNETCDF_HINTS=nc_header_align_size=512;romio_no_indep_rw=true;nc_driver=mpiio$' 'PnetCDF hints'
  # shellcheck disable=SC2086
  expect_status 0 'PnetCDF driver' env PNETCDF_HINTS='a=b; nc_driver = gio' "$SHIMA" $starter ./rank getenv PNETCDF_HINTS
  expect_output 'PNETCDF_HINTS=a=b; nc_driver = gio$' 'PnetCDF driver'
done

expect_status 0 'inside a launcher' "$MPIEXEC" -n 1 "$SHIMA" exec ./rank
expect_output "rank 0 has libshima-$MPI_FAMILY" 'inside a launcher'

# Ranks of Open MPI yield if the node has more of them than cores, unless the user decides.
if [ "$MPI_FAMILY" = openmpi ]; then
  under=("$SHIMA" exec ./rank getenv OMPI_MCA_mpi_yield_when_idle)
  expect_status 0 'more ranks than cores' "$MPIEXEC" -n 1 env OMPI_COMM_WORLD_LOCAL_SIZE=100000 "${under[@]}"
  expect_output 'OMPI_MCA_mpi_yield_when_idle=1$' 'more ranks than cores'
  expect_status 0 'a core for each rank' "$MPIEXEC" -n 1 env OMPI_COMM_WORLD_LOCAL_SIZE="$(nproc)" "${under[@]}"
  expect_output 'OMPI_MCA_mpi_yield_when_idle=$' 'a core for each rank'
  expect_status 0 'more ranks than cores, and a setting' "$MPIEXEC" -n 1 \
    env OMPI_COMM_WORLD_LOCAL_SIZE=100000 OMPI_MCA_mpi_yield_when_idle=0 "${under[@]}"
  expect_output 'OMPI_MCA_mpi_yield_when_idle=0$' 'more ranks than cores, and a setting'
fi

# The launcher may also come after `shima run`, as behind other tools.
expect_status 7 'before a launcher' "$SHIMA" run --stats --log warn "$MPIEXEC" -n 1 ./rank exit 7
expect_output "rank 0 has libshima-$MPI_FAMILY" 'before a launcher'
expect_output 'shima: statistics' 'before a launcher'
expect_refusal 'this launcher starts the ranks' 'two numbers of ranks' "$SHIMA" run -n 2 "$MPIEXEC" -n 1 ./rank
for starter in run exec; do
  expect_refusal 'each rank must become a task by itself' 'a launcher as task' \
    "$SHIMA" $starter --one-space "$MPIEXEC" -n 1 ./rank
done
for wrong in run 'run --stats'; do
  # shellcheck disable=SC2086
  "$MPIEXEC" -n 2 "$SHIMA" $wrong ./rank >out 2>&1 && fail "$wrong in a rank: status"
  expect_output 'one of 2 ranks; write .shima exec. instead' "$wrong in a rank"
done

# Other tools keep their place, and Shima's library appears once.
echo 'int other_tool;' >other.c
cc -shared -fPIC -o libother.so other.c
libmpi=$(ldd ./rank | sed -n 's/.* => \(.*libmpi\(ch\|_abi\)\?\.so\.[0-9]*\) .*/\1/p' | sed -n 1p)
expect_status 0 'other tool' env LD_PRELOAD="$PWD/libother.so" \
  "$SHIMA" exec --mpi "$libmpi" "$SHIMA" exec --mpi "$libmpi" ./rank getenv LD_PRELOAD
expect_output 'LD_PRELOAD=.*libother.so$' 'other tool'
echo 'unsigned la_version(unsigned version) { return version; }' >auditor.c
cc -shared -fPIC -o libauditor.so auditor.c
expect_status 0 'other audit library' env LD_AUDIT="$PWD/libauditor.so" "$SHIMA" exec "$SHIMA" exec ./rank getenv LD_AUDIT
expect_output "rank 0 has libshima-$MPI_FAMILY" 'other audit library'
expect_output 'LD_AUDIT=[^:]*libauditor.so:[^:]*libshima-audit.so$' 'other audit library'

# shellcheck disable=SC2317  # eventually calls it
both_began() { grep -q 'rank 1 of 2' out && grep -q 'rank 0 of 2' out; }
# shellcheck disable=SC2317
none_left() { [ -z "$(ranks_left)" ]; }

# SIGTERM to the command ends the ranks, with and without a report to wait for.  (The launcher's status is not
# checked: MPICH's is 15 or, at random, 0.)
for stats in '' --stats; do
  rm -f out  # what the job before said is not this one's beginning
  "$SHIMA" run -n 2 $stats ./rank sleep 300 >out 2>&1 </dev/null &
  job=$!
  eventually both_began || fail "SIGTERM $stats: the ranks do not begin"
  [ -n "$(ranks_left)" ] || fail "SIGTERM $stats: the ranks are not found"
  kill -TERM $job
  wait $job || true
  eventually none_left || fail "SIGTERM $stats: ranks go on: $(ranks_left | tr '\n' ' ')"
done
finish
