#!/bin/bash
# Shima serves every library with MPICH's ABI, by its name: Cray MPICH's (libmpi_cray.so.12), MPICH's former one, and
# one that a program opens by the name without version and uses by dlsym. The libraries are copies of MPICH's with other
# names in them.
# FLAVOURS: mpich-wheel
set -euo pipefail
# shellcheck source=tests/tool/common.sh
. "$SHIMA_SOURCE_DIR/tests/tool/common.sh"

original=$(realpath "$MPI_PREFIX/lib/libmpi.so.12")

# copy_as NAME FILE: a copy with the name NAME that finds the same libraries as the original.
copy_as() {
  cp "$original" "$2"
  patchelf --set-rpath "$(dirname "$original"):$(dirname "$original")/mpich" "$2"
  patchelf --set-soname "$1" "$2"
}
program=$SHIMA_SOURCE_DIR/tests/regress/profiler_program.c

# Linked, and found by the program's own search path.
for name in libmpi_cray.so.12 libmpi_gnu_91.so.12 libmpich.so.12; do
  mkdir -p "$name.d/lib"
  copy_as "$name" "$name.d/lib/$name"
  cc -w -I"$MPI_PREFIX/include" -o "uses-$name" "$program" "$PWD/$name.d/lib/$name" -Wl,-rpath,"\$ORIGIN/$name.d/lib" \
    -Wl,--allow-shlib-undefined
  rm -f stats
  expect_status 0 "$name" env SHIMA_STATS="$PWD/stats" "$SHIMA" run -n 2 --mpiexec "$MPIEXEC" "./uses-$name"
  grep -q '"file":"data"' stats || fail "$name: the file was not served"
done

# The name without version, as Python's mpi4py opens Intel MPI.
cc -o by-handle "$SHIMA_SOURCE_DIR/tests/tool/by_handle.c"
mkdir -p plain/lib
copy_as libmpi.so.12 plain/lib/libmpi.so
for library in plain/lib/libmpi.so "$original"; do
  rm -f stats
  expect_status 0 "by handle: $library" env SHIMA_STATS="$PWD/stats" \
    "$SHIMA" run -n 1 --mpi mpich --mpiexec "$MPIEXEC" ./by-handle "$library"
  grep -q '"file":"data"' stats || fail "by handle: $library: the file was not served"
done
rm -f stats
expect_status 0 'by handle, in LD_LIBRARY_PATH' env SHIMA_STATS="$PWD/stats" LD_LIBRARY_PATH="$PWD/plain/lib" \
  "$SHIMA" run -n 1 --mpi mpich --mpiexec "$MPIEXEC" ./by-handle libmpi.so
grep -q '"file":"data"' stats || fail 'by handle, in LD_LIBRARY_PATH: the file was not served'

# A program that is linked with MPI, but takes its calls from the file by dlsym.
cc -o linked-too "$SHIMA_SOURCE_DIR/tests/tool/by_handle.c" -Wl,--no-as-needed,--allow-shlib-undefined "$original" \
  -Wl,-rpath,"$(dirname "$original")"
rm -f stats
expect_status 0 'linked and by handle' env SHIMA_STATS="$PWD/stats" "$SHIMA" run -n 1 ./linked-too "$original"
grep -q '"file":"data"' stats || fail 'linked and by handle: the file was not served'

# An MPI without a build is reported once per process, and works as without Shima.
mkdir -p other/lib
copy_as libmpi.so.99 other/lib/libmpi.so.99
expect_status 0 'no build' "$SHIMA" run -n 1 --mpi any --mpiexec "$MPIEXEC" ./by-handle other/lib/libmpi.so.99
expect_output 'shima: other/lib/libmpi.so.99.*Shima has no build for this MPI' 'no build'
[ "$(grep -c 'no build' out)" = 1 ] || fail 'no build: told more than once'
finish
