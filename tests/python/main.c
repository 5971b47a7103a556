/*
 * RANKS: none
 *
 * A CPython that can be a task of a space.  Debian's python3 is linked at a fixed address, so it
 * cannot; but its code is in libpython, which is position-independent.  task_python.sh compiles
 * this if the installed interpreter is such a one.
 */
#include <Python.h>

int main(int argc, char** argv) { return Py_BytesMain(argc, argv); }
