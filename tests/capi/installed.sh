#!/bin/bash
# pff.h and dsm.h as they are installed: found by pkg-config and by CMake, compiled as plain C11 and as C++, and
# the examples run against it.
# FLAVOURS: none
# TIMEOUT: 240
set -euo pipefail
prefix=$PWD/prefix
cmake --install "$SHIMA_BUILD_DIR" --prefix "$prefix" >install.log
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name shima-pff.pc)")
export PKG_CONFIG_PATH
# Installed under a prefix other than the configured one.
read -ra flags < <(pkg-config --define-variable=prefix="$prefix" --cflags --libs shima-pff)
libdir=$(dirname "$(find "$prefix" -name libshima-pff.so)")
[ -z "$SHIMA_SANITIZE" ] || flags+=("-fsanitize=${SHIMA_SANITIZE//+/,}")

echo '#include <shima/pff.h>
int main() { pff_level levels[] = {{2, 3}}; return pff_nested(0, 1, levels, 1).count == 1 ? 0 : 1; }' >header.c
cp header.c header.cpp
cc -std=c11 -pedantic -Wall -Wextra -Wconversion -Wshadow -Werror header.c -o header_c "${flags[@]}"
for standard in 11 17 20; do
  c++ -std=c++$standard -pedantic -Wall -Wextra -Wconversion -Wshadow -Werror header.cpp -o header_cpp "${flags[@]}"
  LD_LIBRARY_PATH=$libdir ./header_cpp
done
LD_LIBRARY_PATH=$libdir ./header_c

for example in columns set double_buffer; do
  cc -std=gnu11 -pedantic -Wall -Wextra -Wconversion -Werror "$SHIMA_SOURCE_DIR/examples/pff_$example.c" \
    -o $example "${flags[@]}"
  LD_LIBRARY_PATH=$libdir ./$example $example.dat
done

# Units for systemd that start the installed command.
for unit in shima-iod.service shima-iod@.service; do
  grep -q "^ExecStart=$prefix/bin/shima iod " "$prefix/lib/systemd/system/$unit"
done
if command -v systemd-analyze >verify.log; then
  cp "$prefix/lib/systemd/system/"shima-iod@.service shima-iod@daemon.service
  systemd-analyze verify --man=no "$prefix/lib/systemd/system/shima-iod.service" ./shima-iod@daemon.service >verify.log 2>&1
  if grep shima-iod verify.log; then exit 1; fi
fi

# Exports only the symbols of the interface.
if nm -D --defined-only "$libdir/libshima-pff.so" | awk '{print $3}' | grep -v '^pff_\|^SHIMA_PFF_0$'; then
  echo "libshima-pff.so shows symbols that are not in pff.h" >&2
  exit 1
fi

# dsm.h, whose library needs liblapi beside it, and its Python package.
echo '#include <shima/dsm.h>
int main(void) { dsm* memory; return dsm_open(0, &memory) == 0 && dsm_close(memory) == 0 ? 0 : 1; }' >shared.c
read -ra flags < <(pkg-config --define-variable=prefix="$prefix" --cflags --libs shima-dsm)
[ -z "$SHIMA_SANITIZE" ] || flags+=("-fsanitize=${SHIMA_SANITIZE//+/,}")
cc -std=c11 -Wall -Wextra -Werror shared.c -o shared "${flags[@]}" "-Wl,-rpath,$libdir"
"$prefix/bin/shima" run --lapi -n 2 ./shared
package=$(dirname "$(dirname "$(find "$prefix" -path '*/shima/dsm.py')")")
[ -n "$SHIMA_SANITIZE" ] || PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$package "$prefix/bin/shima" run --lapi -n 2 python3 -c \
  'from shima import dsm; dsm.open(8).close()'
[ -n "$SHIMA_SANITIZE" ] || PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$package "$prefix/bin/shima" dse run -n 2 python3 -c \
  'from shima import dse; dse.set_topology("ring")'

mkdir client
cat >client/CMakeLists.txt <<EOF
cmake_minimum_required(VERSION 3.20)
project(client C)
find_package(shima REQUIRED)
add_executable(client $SHIMA_SOURCE_DIR/examples/pff_columns.c)
target_link_libraries(client shima::pff ${SHIMA_SANITIZE:+-fsanitize=${SHIMA_SANITIZE//+/,}})
EOF
cmake -S client -B client/build -DCMAKE_PREFIX_PATH="$prefix" >cmake.log
cmake --build client/build >>cmake.log
client/build/client again.dat
