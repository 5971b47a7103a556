#!/bin/bash
# FLAVOURS: mpich-wheel
# TIMEOUT: 300
# PROCESSORS: 2
# NetPIPE's LAPI module, unmodified (source package netpipe of Debian): integrity, latency and throughput mode, as processes and in
# one address space, and integrity over two hosts.
set -euo pipefail
[ -z "$SHIMA_SANITIZE" ] || { echo "NetPIPE itself reads beyond its buffers"; exit 77; }
source=$("$SHIMA_SOURCE_DIR/scripts/fetch_netpipe") || { code=$?; echo "$source"; exit $code; }
gcc -O2 -w -DLAPI -I"$SHIMA_SOURCE_DIR/include" -I"$source" "$source/netpipe.c" "$source/lapi.c" -o NPlapi -L"$SHIMA_BUILD_DIR/lib" \
  -llapi -Wl,-rpath,"$SHIMA_BUILD_DIR/lib"

# measure WHAT SIZES ARGUMENT...: NetPIPE prints a line for each size.
measure() {
  local what=$1 sizes=$2
  shift 2
  run=("$SHIMA" run --lapi -n 2)
  [ "$1" != --hosts ] || { run=("$SHIMA_SOURCE_DIR/bench/two_hosts.py" run --before "$SHIMA run --lapi" --mpiexec "$MPIEXEC" -n 2) && shift; }
  status=0
  "${run[@]}" "$@" >out 2>&1 || status=$?
  [ $status != 77 ] || { tail -n 1 out && return; }
  [ $status = 0 ] || { echo "$what: failed"; tail -n 20 out; exit 1; }
  [ "$(grep -c -e '-->' out)" -ge "$sizes" ] || { echo "$what: fewer than $sizes sizes"; tail -n 20 out; exit 1; }
  ! grep -iq 'integrity check failed\|error' out || { echo "$what:"; grep -i 'fail\|error' out; exit 1; }
  tail -n 1 out
}
measure 'integrity' 30 ./NPlapi -i -n 50 -u 1000000
measure 'integrity, one space' 30 --one-space ./NPlapi -i -n 50 -u 1000000
measure 'ping-pong' 20 ./NPlapi -n 200 -u 100000
measure 'streaming' 20 ./NPlapi -s -n 200 -u 100000
measure 'integrity, two hosts' 30 --hosts ./NPlapi -i -n 50 -u 1000000
