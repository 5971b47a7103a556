#!/bin/bash
# Files of format 1, in their first form, stay readable forever; so does the state that a killed operation leaves.
# FLAVOURS: none
set -euo pipefail
# shellcheck source=tests/tool/common.sh
. "$SHIMA_SOURCE_DIR/tests/tool/common.sh"

golden=$SHIMA_SOURCE_DIR/tests/golden
cp -r "$golden/master-1/a" "$golden/master-1/b" .
export SHIMA_TARGETS=a=$PWD/a:b=$PWD/b

cp "$golden/master-1.txt" file
expect_status 0 'cat' "$SHIMA" cat file
cmp out "$golden/master-1/bytes.txt" || fail 'format 1 is read otherwise'

cp "$golden/master-1-truncate.txt" file
expect_status 0 'cat after an unfinished truncate' "$SHIMA" cat file
head -c 5000 "$golden/master-1/bytes.txt" | cmp - out || fail 'a truncate of format 1 is finished otherwise'
cmp file "$golden/master-1.txt" || fail 'the master file is written otherwise'
finish
