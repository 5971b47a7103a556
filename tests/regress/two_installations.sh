#!/bin/bash
# Installations of one build that run at once, each below a prefix of its own: the unit files, which name the prefix, are
# right below each.
# FLAVOURS: none
# TIMEOUT: 120
set -euo pipefail
for prefix in {1..8}; do
  cmake --install "$SHIMA_BUILD_DIR" --prefix "$PWD/$prefix" >"$prefix.log" 2>&1 &
done
for prefix in {1..8}; do
  wait -n || { cat ./*.log >&2; exit 1; }
done
for prefix in {1..8}; do
  for unit in shima-iod.service shima-iod@.service; do
    sed "s:@bindir@:$PWD/$prefix/bin:g" "$SHIMA_SOURCE_DIR/cmake/package/$unit.in" | cmp - "$prefix/lib/systemd/system/$unit"
  done
done
rm -r {1..8}
