/*
 * RANKS: none
 *
 * A CPython that can be a task of a space.  Debian's python3 is linked at a fixed address, and so
 * cannot; all that it does is in libpython, which can be anywhere.  task_python.sh compiles this
 * where the interpreter at hand is such a one.
 */
#include <Python.h>

int main(int argc, char** argv) { return Py_BytesMain(argc, argv); }
