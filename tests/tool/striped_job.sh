#!/bin/bash
# Files that a program creates: striped by the command line, or else by the directory's default.
set -euo pipefail
# shellcheck source=tests/tool/common.sh
. "$SHIMA_SOURCE_DIR/tests/tool/common.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

"$MPICC" -std=gnu11 -I"$SHIMA_SOURCE_DIR/tests" -o write_file "$SHIMA_SOURCE_DIR/tests/tool/write_file.c"
for letter in a b; do head -c 100000 /dev/zero | tr '\0' $letter; done >expected
mkdir ta tb plain default

# expect_layout FILE UNIT TARGETS
expect_layout() {
  "$SHIMA" stat --json "$1" >layout
  python3 - "$2" "$3" <<'PYTHON' || fail "$1 has another layout: $(cat layout)"
import json, sys
region = json.load(open("layout"))[0]["regions"][0]
assert [str(region["unit"]), ",".join(region["targets"])] == sys.argv[1:]
PYTHON
  "$SHIMA" cat "$1" | cmp - expected || fail "$1 has other bytes"
}
run_job() { expect_status 0 "a job: $*" "$SHIMA" run -n 2 --mpiexec "$MPIEXEC" "$@"; }

run_job ./write_file plain/plain
cmp plain/plain expected || fail 'a plain file'
run_job --stripe unit=4K,targets=3 ./write_file plain/beside
expect_layout plain/beside 4096 beside,beside,beside

# Every target's runs and bytes, over all ranks.
SHIMA_STATS=$PWD/stats run_job --stripe unit=4K,targets=3 ./write_file plain/counted
python3 - "$(stat -c %s expected)" <<'PYTHON' || fail "statistics: $(cat stats)"
import json, sys
subfiles = json.loads(open("stats").readline())["subfiles"]
assert [row["target"] for row in subfiles] == ["beside"] * 3
assert sum(row["bytes_written"] for row in subfiles) == int(sys.argv[1]), subfiles
assert all(row["writes"] > 0 for row in subfiles), subfiles
PYTHON

export SHIMA_TARGETS=a=$PWD/ta:b=$PWD/tb
run_job --stripe unit=8K ./write_file plain/both
expect_layout plain/both 8192 a,b
run_job --stripe targets=1,order=b ./write_file plain/ordered
expect_layout plain/ordered 1048576 b
"$SHIMA" create --stripe unit=16K,targets=2 --default default
run_job ./write_file default/one
expect_layout default/one 16384 a,b
run_job --hint striping_unit=32K ./write_file default/two
expect_layout default/two 32768 a,b
expect_status 0 fsck "$SHIMA" fsck plain default
expect_refusal 'not unit=SIZE' 'bad stripe' "$SHIMA" run --stripe 4M ./write_file x
finish
