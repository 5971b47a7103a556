#!/bin/bash
# `shima info`: the same content as text and as JSON, and the kernel's features with their consequences.
# FLAVOURS: none
set -euo pipefail
# shellcheck source=tests/tool/common.sh
. "$SHIMA_SOURCE_DIR/tests/tool/common.sh"

expect_status 0 'info' "$SHIMA" info
for word in libmpi.so.12 libmpich.so.12 libmpi.so.40 libmpi_abi.so.1 io_uring process_vm userfaultfd FUSE memfd; do
  expect_output "$word" 'info'
done
expect_status 0 'info --json' "$SHIMA" info --json
python3 - out <<'PYTHON' || fail 'the JSON lacks something'
import json, sys
info = json.load(open(sys.argv[1]))
assert {build["name"] for build in info["builds"]} == {"mpich", "openmpi", "abi"}
assert all(feature["detail"] and feature["consequence"] for feature in info["kernel"])
assert info["mpis"] and all(mpi["version"] for mpi in info["mpis"])
PYTHON
finish
