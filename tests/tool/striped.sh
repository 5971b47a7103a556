#!/bin/bash
# The commands for striped files: their effects, output and status, and the problems that fsck finds and repairs.
# FLAVOURS: none
# TIMEOUT: 180
set -euo pipefail
# shellcheck source=tests/tool/common.sh
. "$SHIMA_SOURCE_DIR/tests/tool/common.sh"

here=$(realpath .)
export SHIMA_TARGETS=a=$here/ta:b=$here/tb:c=$here/tc
mkdir ta tb tc d e
head -c 3000001 /dev/urandom >data
head -c 500 /dev/urandom >small

same() { "$SHIMA" cat "$1" | cmp - "$2" || fail "$1 is not as $2"; }
json() { "$SHIMA" stat --json "$1" | python3 -c "import json, sys; print(json.load(sys.stdin)[0]$2)"; }
expect_json() {
  local found
  found=$(json "$1" "$2")
  [ "$found" = "$3" ] || fail "$1: $2 is $found, not $3"
}
id_of() { json "$1" "['id']"; }
# expect_failure REGEX WHAT command...: status 1 and one line.
expect_failure() {
  local pattern=$1 what=$2
  shift 2
  expect_status 1 "$what" "$@"
  expect_output "$pattern" "$what"
  expect_output '^shima: [^:]+.*: .*; .*$' "$what"
}
expect_clean() {
  expect_status 0 "fsck after $1" "$SHIMA" fsck d e
  expect_output 'checked$' "fsck after $1"
  [ "$(grep -cv ': note: ' out)" = 2 ] || [ "$(grep -cv ': note: ' out)" = 1 ] || fail "fsck after $1 says more"
}

# --- create, stat, ls
expect_status 0 create "$SHIMA" create --stripe unit=64K,targets=3 d/f
expect_json d/f "['kind']" striped
expect_json d/f "['regions'][0]['unit']" 65536
expect_json d/f "['regions'][0]['targets']" "['a', 'b', 'c']"
expect_failure 'file exists' 'create twice' "$SHIMA" create d/f
expect_status 0 'create in order' "$SHIMA" create --stripe unit=4K --order c,a d/ordered
expect_json d/ordered "['regions'][0]['targets']" "['c', 'a']"
expect_status 0 'create with regions' "$SHIMA" create --stripe unit=4K,targets=1 --region 64K:1M:3 --region 8M:4M:b+a d/regions
expect_json d/regions "['regions'][1]['unit']" 1048576
expect_json d/regions "['regions'][2]['targets']" "['b', 'a']"
expect_status 0 'create beside' "$SHIMA" create --stripe targets=2,order=beside d/beside
[ -f d/.shima/"$(id_of d/beside)".1 ] || fail 'no subfile beside the file'
(cd d && "$SHIMA" create here) || fail 'create by a name without a directory'
expect_clean create
expect_refusal 'is not unit=SIZE' 'bad stripe' "$SHIMA" create --stripe size=3 d/x
expect_refusal 'not unit=SIZE' 'no targets' "$SHIMA" create --stripe targets=0 d/x
expect_failure 'target nowhere, which is not configured' 'unknown target' "$SHIMA" create --order nowhere d/x
expect_refusal 'no file is named' 'nothing to create' "$SHIMA" create

# --- cp, cat
for goal in f ordered regions beside; do
  expect_status 0 "cp to $goal" "$SHIMA" cp data d/$goal
  same d/$goal data
done
expect_status 0 'cp from striped to striped' "$SHIMA" cp --stripe unit=1000,targets=2 d/regions d/copy
same d/copy data
expect_json d/copy "['regions'][0]['unit']" 1000
expect_status 0 'cp to plain' "$SHIMA" cp d/copy plain
cmp plain data || fail 'cp to plain'
expect_status 0 'cp over a longer one' "$SHIMA" cp small d/copy
same d/copy small
expect_refusal 'keeps its own layout' 'cp --stripe over a file' "$SHIMA" cp --stripe targets=2 data d/copy
expect_failure 'are the same file' 'cp onto itself' "$SHIMA" cp d/f d/f
cp d/f d/f.bak
expect_failure 'are the same file' 'cp of a copy of the master file' "$SHIMA" cp d/f.bak d/f
expect_failure 'are the same file' 'cp of a subfile' "$SHIMA" cp "ta/$(id_of d/f).0" d/f
same d/f data
rm d/f.bak
cp -r d d.bak
expect_failure 'are the same file' 'cp of a copy of the directory with subfiles elsewhere' "$SHIMA" cp d.bak/f d/f
expect_status 0 'cp of a copy of the subfiles' "$SHIMA" cp d.bak/beside d/beside
same d/beside data
rm -r d.bak
expect_failure 'no such file' 'cp of nothing' "$SHIMA" cp nothing d/x
expect_refusal 'is not a directory' 'cp of several' "$SHIMA" cp data small d/x
truncate -s 1G sparse
printf end | dd of=sparse bs=1 seek=900000000 conv=notrunc status=none
expect_status 0 'cp of holes' "$SHIMA" cp --stripe targets=2 sparse d/sparse
expect_json d/sparse "['size']" 1073741824
[ "$(du -k "ta/$(id_of d/sparse).0" | cut -f1)" -lt 1000 ] || fail 'the copy has no holes'
"$SHIMA" cp d/sparse sparse2
[ "$(du -k sparse2 | cut -f1)" -lt 1000 ] || fail 'the copy of the copy has no holes'
cmp sparse sparse2 || fail 'sparse copy'
expect_status 0 ls "$SHIMA" ls d
expect_output '^-rw.* +3x +3000001 d/f$' ls
expect_status 0 'ls --json' "$SHIMA" ls --json d
python3 -c 'import json; assert {"d/f", "d/sparse"} <= {each["path"] for each in json.load(open("out"))}' || fail 'ls --json'
expect_clean cp

# --- mv, rm
expect_status 0 mv "$SHIMA" mv d/f d/g
same d/g data
expect_status 0 'mv beside' "$SHIMA" mv d/beside e
same e/beside data
[ -z "$(ls d/.shima)" ] || fail 'subfiles were left behind'
expect_status 0 'mv over another' "$SHIMA" mv d/copy d/ordered
same d/ordered small
expect_clean mv
expect_failure 'no such file' 'mv of nothing' "$SHIMA" mv nothing d/x
expect_status 0 rm "$SHIMA" rm d/sparse d/regions
expect_failure 'no such file' 'rm of nothing' "$SHIMA" rm d/sparse
expect_status 0 'rm -f of nothing' "$SHIMA" rm -f d/sparse
expect_clean rm

mkdir m1 m2
touch m1/z
expect_status 0 'mv of a directory into another' "$SHIMA" mv m1/ m2/
[ -f m2/m1/z ] || fail 'mv DIRECTORY/ DIRECTORY/ has replaced the directory'
rm -r m2

mkdir -p tree/sub
"$SHIMA" create --stripe targets=2 tree/one
"$SHIMA" create --stripe targets=2,order=beside tree/sub/two
touch tree/sub/plain
ln -s ../../d/g tree/sub/link
expect_failure 'removing tree' 'rm of a directory' "$SHIMA" rm tree
cp tree/sub/.shima/"$(id_of tree/sub/two)".0 tree/sub/.shima/11111111111111111111111111111111.0
expect_failure 'parts that belong to no file here' 'rm -r of a directory with parts of others' "$SHIMA" rm -r tree
rm tree/sub/.shima/1*.0
expect_status 0 'rm -r' "$SHIMA" rm -r tree
[ ! -e tree ] || fail 'rm -r left something'
same d/g data
expect_clean 'rm -r'

# --- other than regular files
mkfifo pipe
expect_status 0 'stat of a pipe' timeout 10 "$SHIMA" stat pipe
expect_output 'special' 'stat of a pipe'
expect_failure 'not a regular file' 'cp of a pipe' timeout 10 "$SHIMA" cp pipe d/x
expect_failure 'not a regular file' 'cp of a device' timeout 10 "$SHIMA" cp /dev/zero d/x
[ ! -e d/x ] || fail 'cp of a device made a file'
rm pipe
if [ "$(id -u)" = 0 ] && setpriv --reuid=65534 --clear-groups test -x "$here"; then
  mkdir -m 700 closed
  expect_failure 'listing closed' 'ls of a directory that may not be listed' setpriv --reuid=65534 --clear-groups "$SHIMA" ls closed
  chmod 755 closed
  (umask 077; echo secret >closed/plain)
  expect_status 0 'ls of a file that may not be read' setpriv --reuid=65534 --clear-groups "$SHIMA" ls closed
  rm -r closed
fi

# --- files over 2^40 bytes
truncate -s 3298534883329 far
printf 'far away' | dd of=far bs=1 seek=2199023255552 conv=notrunc status=none
expect_status 0 'cp of 3 TiB of holes' timeout 60 "$SHIMA" cp --stripe unit=1M,targets=3 far d/far
expect_json d/far "['size']" 3298534883329
expect_status 0 'restripe of 3 TiB of holes' timeout 60 "$SHIMA" restripe --stripe unit=64K,targets=2 --region 1536G:1M:3 d/far
expect_json d/far "['size']" 3298534883329
expect_status 0 'cp back' timeout 60 "$SHIMA" cp d/far back
[ "$(stat -c %s back)" = 3298534883329 ] || fail 'the size of 3 TiB of holes'
[ "$(dd if=back bs=1 skip=2199023255552 count=8 status=none)" = 'far away' ] || fail 'the bytes at 2 TiB'
[ "$(du -k back | cut -f1)" -lt 1000 ] || fail '3 TiB of holes are full'
rm far back
expect_status 0 'rm of 3 TiB' "$SHIMA" rm d/far
expect_clean 'large files'

# --- restripe
expect_status 0 restripe "$SHIMA" restripe --stripe unit=10000,targets=2 --order c,b d/g
expect_json d/g "['regions'][0]['targets']" "['c', 'b']"
same d/g data
expect_status 0 'restripe to the same' "$SHIMA" restripe --stripe unit=10000,targets=2 --order c,b d/g
expect_refusal 'no new layout is given' 'restripe to nothing' "$SHIMA" restripe d/g
expect_failure 'is not a striped file' 'restripe of a plain file' "$SHIMA" restripe --stripe targets=2 plain
expect_clean restripe

# --- defaults of a directory
mkdir e/def
expect_status 0 'create --default' "$SHIMA" create --stripe unit=8K,targets=2 --default e/def
expect_status 0 'cp into a directory with a default' "$SHIMA" cp data e/def
expect_json e/def/data "['regions'][0]['unit']" 8192
expect_status 0 'create with a default' "$SHIMA" create --stripe unit=1K e/def/own
expect_json e/def/own "['regions'][0]['unit']" 1024
expect_json e/def/own "['regions'][0]['targets']" "['a', 'b']"
expect_status 0 'cp --plain' "$SHIMA" cp --plain data e/def/plain
expect_json e/def/plain "['kind']" plain

# --- fsck
# finds REGEX WHAT STATUS: without and with --repair.
finds() {
  expect_status 2 "$2 is found" "$SHIMA" fsck d
  expect_output "$1" "$2"
  expect_status "$3" "$2 with --repair" "$SHIMA" fsck --repair d
}
id=$(id_of d/g)
cp d/g saved
echo overwritten >d/g
finds 'd/g: overwritten master file' 'an overwritten master file' 1
same d/g data
cmp saved d/g || fail 'the rebuilt master file differs'
[ "$(cat d/g.overwritten-*)" = overwritten ] || fail 'the overwriting file is not kept'
rm d/g.overwritten-*
head -c 200 saved >d/g
expect_status 1 'a torn master file cannot be opened' "$SHIMA" cat d/g
finds 'd/g: overwritten master file' 'a torn master file' 1
rm d/g.overwritten-*
same d/g data
chmod 600 d/g
finds 'exposed subfile' 'subfiles more open than the file' 1
echo x >tb/"$id".master
finds 'stale copy' 'a torn copy' 1
mv d/g d/moved
finds 'stale copy' 'a file moved by mv' 1
mv d/moved d/g
expect_status 1 'moved back' "$SHIMA" fsck --repair d
touch "d/.g.shima-0123abcd"
finds 'leftover draft' 'a draft' 1
cp tc/"$id".0 ta/"$id".7
finds 'foreign subfile' 'a subfile too many' 2
rm ta/"$id".7
mv tb/"$id".1 kept
finds 'missing subfile' 'a missing subfile' 2
expect_status 1 'reading it' "$SHIMA" cat d/g
expect_output 'subfile 1 is missing on target b' 'reading it'
ln -s "$here/kept" tb/"$id".1
finds 'foreign subfile' 'a link for a subfile' 2
rm tb/"$id".1
mv kept tb/"$id".1
same d/g data
"$SHIMA" create --stripe unit=4K,targets=1 --region 64K:4K:2 d/cut
truncate -s 100000 ta/"$(id_of d/cut)".0
finds 'oversized subfile' 'an oversized subfile' 2
truncate -s 100 ta/"$(id_of d/cut)".0
rm d/cut
finds ': orphan: 4 parts|: orphan: 5 parts' 'orphans' 2
expect_status 1 'fsck --remove-orphans' "$SHIMA" fsck --remove-orphans d
expect_clean 'everything'
# A forged master file must not make its opener remove another user's subfiles.
if [ "$(id -u)" = 0 ]; then
  python3 - d/g e/forged <<'PYTHON'
import sys
text = open(sys.argv[1]).read()
body = text[:text.rindex("\nend ") + 1] + "intent remove\n"
checksum = 0xcbf29ce484222325
for byte in body.encode():
    checksum = (checksum ^ byte) * 0x100000001b3 % 2**64
open(sys.argv[2], "w").write(f"{body}end {checksum:016x}\n")
PYTHON
  chown 12345 e/forged
  expect_status 1 'a forged master file' "$SHIMA" cat e/forged
  expect_output 'no copy of the master file there confirms that they belong together' 'a forged master file'
  expect_status 0 'rm of a forged master file' "$SHIMA" rm e/forged
  same d/g data
  expect_clean 'the forged master file'
fi
expect_status 2 'an unconfigured target' env SHIMA_TARGETS="a=$here/ta" "$SHIMA" fsck d
expect_output 'missing target' 'an unconfigured target'
expect_status 3 'fsck of nothing' "$SHIMA" fsck
expect_status 0 'fsck --json' "$SHIMA" fsck --json d/g
python3 -c 'import json; found = json.load(open("out")); assert found["files"] == 1 and found["findings"] == []' || fail 'fsck --json'
finish
