"""Distributed shared memory for the tasks of a job: dsm.h for Python.

    # shima run --lapi -n 4 python3 program.py
    from shima import dsm

    with dsm.open(1 << 20) as memory:            # every task donates a MiB
        row = memory.array(0, (memory.tasks,), "i8")   # a NumPy-like array in task 0's memory
        row[memory.task] = memory.task ** 2
        memory.barrier()
        print(row[...], memory.fetch_add(0, 4096, 1))

Memory.get and Memory.put take any object with the buffer protocol. An Array transfers what an index
selects: reading gives a NumPy array or a scalar, assignment writes through. Only arrays need NumPy.
See dsm(3) for what the operations mean.
"""

import ctypes
import itertools
import math
import os
import pathlib
import weakref

READ_WRITE, READ_ONLY, NONE = 0, 1, 2
WAYS = {"best": 0, "lapi": 1, "tcp": 2, "tcp_spinning": 3, "udp": 4}


class Error(Exception):
    """A call has failed. `code` is that of dsm.h; the subclass depends on it."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


class AddressError(Error, IndexError):
    """There is no such task, or the range exceeds its donated memory."""


class ViolationError(Error, PermissionError):
    """The owner does not permit this access."""


class LostError(Error, ConnectionError):
    """The task has ended, has left, or cannot be reached."""


_CLASSES = {-3: AddressError, -4: ViolationError, -6: LostError}


class _Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("way", ctypes.c_int)]


_VOID, _INT, _U64, _SIZE = ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64, ctypes.c_size_t
_CALLS = {
    "dsm_open": [ctypes.POINTER(_Options), ctypes.POINTER(_VOID)],
    "dsm_close": [_VOID],
    "dsm_task": [_VOID],
    "dsm_tasks": [_VOID],
    "dsm_size": [_VOID, _INT, ctypes.POINTER(_U64)],
    "dsm_read": [_VOID, _INT, _U64, _VOID, _SIZE],
    "dsm_write": [_VOID, _INT, _U64, _VOID, _SIZE],
    "dsm_write_b": [_VOID, _INT, _U64, _VOID, _SIZE],
    "dsm_fence": [_VOID],
    "dsm_barrier": [_VOID],
    "dsm_lost": [_VOID, ctypes.POINTER(_U64)],
    "dsm_alloc": [_VOID, _SIZE, _INT, ctypes.POINTER(_U64)],
    "dsm_free": [_VOID, _U64],
    "dsm_protect": [_VOID, _U64, _U64, _INT],
}
for _bits, _type in ((32, ctypes.c_uint32), (64, _U64)):
    for _name in ("fetch_add", "fetch_or", "swap"):
        _CALLS[f"dsm_{_name}_{_bits}"] = [_VOID, _INT, _U64, _type, ctypes.POINTER(_type)]
    _CALLS[f"dsm_compare_and_swap_{_bits}"] = [_VOID, _INT, _U64, _type, _type]


def _load():
    """The library that was installed with this package; from the sources, where the loader finds it."""
    try:
        from shima import _library as installed  # pylint: disable=import-outside-toplevel
    except ImportError:
        return ctypes.CDLL("libshima-dsm.so.0")
    return ctypes.CDLL(str((pathlib.Path(__file__).parent / installed.PATH).resolve()))


_library = _load()
for _name, _arguments in _CALLS.items():
    getattr(_library, _name).argtypes = _arguments
    getattr(_library, _name).restype = _INT
_library.dsm_address.argtypes = [_VOID]
_library.dsm_address.restype = _VOID
_library.dsm_error_message.restype = ctypes.c_char_p


_RANGES = {_INT: (-(1 << 31), 1 << 31), _U64: (0, 1 << 64), _SIZE: (0, 1 << 64), ctypes.c_uint32: (0, 1 << 32)}


def _check_range(what, value, kind):
    """Ctypes would take the low bits of a number that is too large."""
    low, end = _RANGES.get(kind, (None, None))
    if low is not None and not low <= value < end:
        raise AddressError(-3, f"{what}: {value} is not between {low} and {end - 1}")


def _call(name, *arguments):
    for value, kind in zip(arguments, _CALLS[name]):
        if isinstance(value, int):
            _check_range(name, value, kind)
    code = getattr(_library, name)(*arguments)
    if code >= 0:
        return code
    text = _library.dsm_error_message().decode(errors="replace")
    raise _CLASSES.get(code, Error)(code, text)


def _address(buffer, writable):
    """The address and the length of an object's bytes, and what keeps them alive."""
    view = memoryview(buffer)
    if not view.c_contiguous:
        raise ValueError("the buffer is not contiguous; copy it first")
    if view.nbytes == 0:
        return None, 0, view
    if not view.readonly:
        kept = (ctypes.c_char * view.nbytes).from_buffer(view.cast("B"))
        return ctypes.addressof(kept), view.nbytes, kept
    if writable:
        raise ValueError("the buffer is read-only")
    kept = ctypes.create_string_buffer(view.tobytes(), view.nbytes)
    return ctypes.addressof(kept), view.nbytes, kept


def open(size=0, way="best"):  # pylint: disable=redefined-builtin
    """Opens a shared memory, to which this task donates `size` bytes. All tasks of the job call it."""
    return Memory(size, way)


class Memory:
    """A shared memory; also a context manager. Its buffer is `local` (from Python 3.12 on also itself)."""

    def __init__(self, size=0, way="best"):
        if way not in WAYS:
            raise ValueError(f"way {way!r} is none of {', '.join(WAYS)}")
        _check_range("the size of the donated memory", size, _SIZE)
        handle = _VOID()
        _call("dsm_open", ctypes.byref(_Options(size, WAYS[way])), ctypes.byref(handle))
        self._handle = handle
        self.task = _call("dsm_task", handle)
        self.tasks = _call("dsm_tasks", handle)
        address = _library.dsm_address(handle)
        self._bytes = (ctypes.c_char * size).from_address(address) if address else None
        #: The bytes that this task has donated.
        self.local = memoryview(self._bytes if address else bytearray()).cast("B")

    def close(self):
        """Waits for the other tasks, and frees the memory. Not while arrays or views of `local` exist."""
        if not self._handle:
            return
        views = weakref.ref(self._bytes) if self._bytes is not None else lambda: None
        self._bytes, self.local = None, memoryview(b"")
        if (alive := views()) is not None:
            self._bytes, self.local = alive, memoryview(alive).cast("B")
            raise BufferError("the memory is in use: delete the arrays and views of `local` before close()")
        handle, self._handle = self._handle, None
        _call("dsm_close", handle)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.close()
        # After an exception the others shall not be waited for: the process leaves when it ends.

    def __buffer__(self, flags):
        return self.local

    def size(self, task):
        """How many bytes a task has donated."""
        size = _U64()
        _call("dsm_size", self._handle, task, ctypes.byref(size))
        return size.value

    # -- data --

    def get(self, task, offset, into):
        """READ: fills `into`, a writable buffer or a number of bytes, and returns it."""
        into = bytearray(into) if isinstance(into, int) else into
        address, len_bytes, _kept = _address(into, True)
        _call("dsm_read", self._handle, task, offset, address, len_bytes)
        return into

    def put(self, task, offset, data, blocking=False):
        """WRITE: copies a buffer there. If `blocking`, returns when it is in the target's memory."""
        address, len_bytes, _kept = _address(data, False)
        _call("dsm_write_b" if blocking else "dsm_write", self._handle, task, offset, address, len_bytes)

    def fence(self):
        """Waits until what this task has put is in the targets' memory."""
        _call("dsm_fence", self._handle)

    def barrier(self):
        """A fence on all tasks, then waits until all have called it."""
        _call("dsm_barrier", self._handle)

    def lost(self):
        """How many bytes had been lost at the last fence; only by UDP."""
        lost = _U64()
        _call("dsm_lost", self._handle, ctypes.byref(lost))
        return lost.value

    def array(self, task, shape, dtype="f8", offset=0):
        """An array in a task's memory."""
        return Array(self, task, shape, dtype, offset)

    # -- atomic operations: on unsigned words of 32 or 64 bits, modulo their size --

    def _exchange(self, name, task, offset, value, bits):
        word = {32: ctypes.c_uint32, 64: _U64}[bits]
        previous = word()
        value &= (1 << bits) - 1
        _call(f"dsm_{name}_{bits}", self._handle, task, offset, value, ctypes.byref(previous))
        return previous.value

    def fetch_add(self, task, offset, value, bits=64):
        """Adds to a word and returns what it was."""
        return self._exchange("fetch_add", task, offset, value, bits)

    def fetch_or(self, task, offset, value, bits=64):
        """Sets bits of a word and returns what it was."""
        return self._exchange("fetch_or", task, offset, value, bits)

    def swap(self, task, offset, value, bits=64):
        """Stores a word and returns what it was."""
        return self._exchange("swap", task, offset, value, bits)

    def compare_and_swap(self, task, offset, expected, desired, bits=64):
        """Stores `desired` if the word is `expected`; returns whether it has."""
        words = (expected & (1 << bits) - 1, desired & (1 << bits) - 1)
        return _call(f"dsm_compare_and_swap_{bits}", self._handle, task, offset, *words) == 1

    # -- the own memory --

    def alloc(self, size, protection=READ_WRITE):
        """Allocates a range of this task's memory; returns its offset."""
        offset = _U64()
        _call("dsm_alloc", self._handle, size, protection, ctypes.byref(offset))
        return offset.value

    def free(self, offset):
        """Frees a range that alloc() has returned."""
        _call("dsm_free", self._handle, offset)

    def protect(self, offset, size, protection):
        """Changes what accesses to a range of this task's memory may do."""
        _call("dsm_protect", self._handle, offset, size, protection)


class Array:
    """An array in a task's memory, C order. Indices are those of NumPy.

    What an index selects moves in one transfer if it is contiguous, else in one for each contiguous
    run. Integers and slices cost memory for what they select; arrays and masks as indices cost 8 bytes
    for each element of the whole array.
    """

    def __init__(self, memory, task, shape, dtype="f8", offset=0):
        import numpy  # pylint: disable=import-outside-toplevel
        self._numpy = numpy
        self.memory, self.task, self.offset = memory, task, offset
        dtype, size = numpy.dtype(dtype), memory.size(task)
        if dtype.hasobject:
            raise TypeError("an array of Python objects cannot be in shared memory")
        lengths = shape if isinstance(shape, (tuple, list)) else (shape,)
        len_bytes = math.prod(map(int, lengths)) * dtype.itemsize
        if offset < 0 or offset + len_bytes > size:
            raise AddressError(-3, f"an array of {len_bytes} bytes at offset {offset} of task {task}: it has "
                                   f"donated {size} bytes")
        # The places of elements, of which none is ever touched: it has the memory of one.
        strides = list(itertools.accumulate(lengths[:0:-1], lambda a, b: a * int(b), initial=dtype.itemsize))[::-1]
        self._form = numpy.lib.stride_tricks.as_strided(numpy.zeros(1, dtype), lengths, strides[-len(lengths):])

    shape = property(lambda self: self._form.shape)
    dtype = property(lambda self: self._form.dtype)
    size = property(lambda self: self._form.size)
    nbytes = property(lambda self: self._form.nbytes)

    def __len__(self):
        return len(self._form)

    def __array__(self, dtype=None, copy=None):
        whole = self[...]
        return whole if dtype is None else whole.astype(dtype)

    def _runs(self, key):
        """The shape that an index selects, and its contiguous runs as (offset, elements)."""
        numpy, form = self._numpy, self._form
        basic = key if isinstance(key, tuple) else (key,)
        if all(part is Ellipsis or isinstance(part, (int, slice, numpy.integer)) and
               not isinstance(part, bool) for part in basic):
            # An Ellipsis makes the result a view also if it is one element.
            view = form[basic if Ellipsis in basic else (*basic, Ellipsis)]
            start = view.__array_interface__["data"][0] - form.__array_interface__["data"][0]
            if view.flags.c_contiguous:
                return view.shape, [(self.offset + start, view.size)]
            places = numpy.array(start)
            for length, stride in zip(view.shape, view.strides):
                places = numpy.add.outer(places, numpy.arange(length) * stride)
        else:
            places = numpy.arange(form.size).reshape(form.shape)[key] * form.itemsize
        flat = numpy.ravel(places)
        ends = numpy.flatnonzero(numpy.diff(flat) != form.itemsize) + 1
        return numpy.shape(places), [(self.offset + int(run[0]), run.size) for run in numpy.split(flat, ends) if run.size]

    def __getitem__(self, key):
        shape, runs = self._runs(key)
        result = self._numpy.empty(shape, self.dtype)
        flat, at = result.reshape(-1), 0
        for offset, count in runs:
            part = flat[at:at + count].view("u1")
            self.memory.get(self.task, offset, part)
            at += count
        return result if shape else result[()]

    def __setitem__(self, key, value):
        shape, runs = self._runs(key)
        numpy = self._numpy
        data = numpy.ascontiguousarray(numpy.broadcast_to(numpy.asarray(value, self.dtype), shape))
        flat, at = data.reshape(-1), 0
        for offset, count in runs:
            self.memory.put(self.task, offset, flat[at:at + count].view("u1"))
            at += count

    def __repr__(self):
        return (f"<array of shape {self.shape} and type {self.dtype} at offset {self.offset} of task "
                f"{self.task}>")


def main():
    """`python3 -m shima.dsm`: says whether this process is a task."""
    print("a task" if "SHIMA_LAPI" in os.environ else "no task: start it with shima run --lapi")


if __name__ == "__main__":
    main()
