"""A task's view of its job under `shima dse run`: dse.h for Python.

    # shima dse run -n 8 --topology torus:4x2 python3 program.py
    from shima import dse

    east = dse.neighbor("east")                 # a task's number, or None
    print(dse.task(), dse.topology(), dse.neighbors(), dse.coordinates())
    dse.set_topology("ring")                    # collective

See dse(3) for what the calls mean.
"""

import ctypes
import pathlib

_NO_NEIGHBOR = -3


class Error(Exception):
    """A call has failed. `code` is that of dse.h."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


def _load():
    """The library that was installed with this package; from the sources, where the loader finds it."""
    name = "libshima-dse.so.0"
    try:
        from shima import _library as installed  # pylint: disable=import-outside-toplevel
    except ImportError:
        return ctypes.CDLL(name)
    return ctypes.CDLL(str((pathlib.Path(__file__).parent / installed.PATH).resolve().with_name(name)))


_library = _load()
_library.dse_error_message.restype = ctypes.c_char_p
_library.dse_topology.restype = ctypes.c_char_p


def _check(code):
    if code < 0:
        raise Error(code, _library.dse_error_message().decode())
    return code


def task():
    """The caller's number."""
    return _check(_library.dse_task())


def tasks():
    """How many tasks there are."""
    return _check(_library.dse_tasks())


def topology():
    """The topology as text."""
    text = _library.dse_topology()
    if text is None:
        _check(_library.dse_task())
        raise Error(-7, _library.dse_error_message().decode())
    return text.decode()


def neighbor(name, of=None):
    """The number of a task's neighbor, None if it has none of this name. Without `of`: the caller's."""
    found = _library.dse_neighbor_of(task() if of is None else int(of), str(name).encode())
    return None if found == _NO_NEIGHBOR else _check(found)


def neighbors(of=None):
    """All neighbors of a task: {name: number}."""
    number = task() if of is None else int(of)
    found = {}
    for index in range(_check(_library.dse_neighbors(number))):
        name = ctypes.c_char_p()
        other = _check(_library.dse_neighbor_at(number, index, ctypes.byref(name)))
        found[name.value.decode()] = other
    return found


def coordinates(of=None):
    """The coordinates of a task; empty in a graph."""
    number = task() if of is None else int(of)
    room = (ctypes.c_int * 32)()
    count = _check(_library.dse_coordinates(number, room, len(room)))
    return tuple(room[:count])


def set_topology(text):
    """Collective: all tasks change to the same topology."""
    _check(_library.dse_set_topology(str(text).encode()))
