#!/bin/bash
# Errors of `shima` before it starts a program: status 2 and one line with the remedy.
# FLAVOURS: none
set -euo pipefail
# shellcheck source=tests/tool/common.sh
. "$SHIMA_SOURCE_DIR/tests/tool/common.sh"

echo 'int main(void) { return 0; }' >plain.c
cc -o plain plain.c
cc -static -o static plain.c

expect_refusal 'static: is linked statically' 'static program' "$SHIMA" run -n 2 ./static
expect_refusal 'plain: uses no MPI' 'no MPI' "$SHIMA" run -n 2 ./plain
expect_refusal 'plain: uses no MPI' 'no MPI, exec' "$SHIMA" exec ./plain
expect_refusal 'nothere: there is no such' 'no program' "$SHIMA" run ./nothere
expect_refusal 'no program was named' 'nothing to run' "$SHIMA" run -n 2
expect_refusal '--bogus' 'unknown option' "$SHIMA" run --bogus ./plain
expect_refusal 'subcommand' 'no subcommand' "$SHIMA"
expect_refusal 'not in range' 'no ranks' "$SHIMA" run -n 0 ./plain
expect_refusal 'a hint is key=value' 'hint without value' "$SHIMA" run --hint cb_nodes ./plain
expect_refusal 'a hint is key=value' 'hint with ;' "$SHIMA" run --hint 'a=b;c=d' ./plain
expect_refusal 'neither a build' 'unknown build' "$SHIMA" run --mpi lam ./plain

# Libraries with an MPI's name: an old one, the standard ABI's, one that does not exist.
fake_mpi() {
  echo 'int fake_mpi;' >fake.c
  cc -shared -fPIC -Wl,-soname,"$1" -o "$1" fake.c
  echo 'extern int fake_mpi; int main(void) { return fake_mpi; }' >uses.c
  cc -o "uses-$1" uses.c "./$1"
}
for soname in libmpi.so.20 libmpi_abi.so.9; do
  fake_mpi $soname
  expect_refusal "uses $soname, and Shima has no build" "$soname" \
    env LD_LIBRARY_PATH="$PWD" "$SHIMA" run "./uses-$soname"
  rm $soname
  expect_refusal "needs $soname, which the loader does not find" "$soname gone" "$SHIMA" run "./uses-$soname"
done

printf '#!%s\n' "$PWD/plain" >script
chmod +x script
expect_status 0 'script without MPI' "$SHIMA" exec ./script
echo hello >text
chmod +x text
expect_refusal 'text: is neither' 'text file' "$SHIMA" run ./text

expect_status 0 'version' "$SHIMA" --version
expect_output '^shima [0-9]+\.[0-9]+' 'version'
expect_status 0 'help' "$SHIMA" --help
expect_status 0 'help of run' "$SHIMA" run --help
expect_output '--stats' 'help of run'
finish
