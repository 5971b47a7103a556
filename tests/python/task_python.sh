# Sourced by tests whose ranks are Python processes and tasks of a space.
# shellcheck shell=bash

# shellcheck disable=SC2034
# task_python INTERPRETER: sets $task_python to an interpreter with the same packages that is position-independent: this one, or
# main.c beside its libpython, in an environment below the current directory.
task_python() {
  local prefix include libraries version
  task_python=$1
  ! readelf -h "$(realpath "$1")" | grep -q 'Type: *DYN' || return 0
  { read -r prefix && read -r include && read -r libraries && read -r version; } < <("$1" -c 'import sys, sysconfig
print(sys.prefix, *map(sysconfig.get_config_var, ("INCLUDEPY", "LIBDIR", "LDVERSION")), sep="\n")')
  mkdir -p task-python/bin
  cc -O1 -fPIE -pie -I"$include" -o task-python/bin/python "$SHIMA_SOURCE_DIR/tests/python/main.c" -L"$libraries" \
    -Wl,-rpath,"$libraries" "-lpython$version"
  cp "$prefix/pyvenv.cfg" task-python
  ln -s "$prefix/lib" "$prefix/include" task-python
  task_python=$PWD/task-python/bin/python
}
