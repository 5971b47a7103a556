#!/usr/bin/env python3
"""One HDF5 file, written and read by all ranks through parallel h5py.

    shima run -n 4 python h5py_parallel.py write field.h5
    shima run -n 4 python h5py_parallel.py read  field.h5

Every rank holds some columns of a field that changes with time. In the file each row of the field is cut into as
many pieces as there are ranks, so that a rank's part is many small pieces, the case for collective calls. h5py makes
collective calls inside `with dataset.collective`, otherwise independent ones. Nothing here refers to Shima.

Needs h5py built with MPI (Debian: python3-h5py-mpi; by pip: HDF5_MPI=ON CC=mpicc pip install --no-binary h5py h5py).
"""

import sys

from mpi4py import MPI
import h5py
import numpy

STEPS, ROWS, COLUMNS = 5, 240, 360
comm = MPI.COMM_WORLD

# This rank's columns; the widths differ if the columns do not divide evenly.
first, last = (COLUMNS * rank // comm.size for rank in (comm.rank, comm.rank + 1))
mine = slice(first, last)


def field(step):
    """The data that this rank computes: every value identifies its place."""
    rows, columns = numpy.mgrid[0:ROWS, first:last]
    return (step * ROWS + rows) * COLUMNS + columns + 0.5


def write(path):
    with h5py.File(path, "w", driver="mpio", comm=comm) as file:
        # All ranks make the calls that change the structure of the file, with the same arguments.
        pressure = file.create_dataset("pressure", (STEPS, ROWS, COLUMNS), dtype="f8")
        pressure.attrs["unit"] = "Pa"
        widths = file.create_dataset("width", (comm.size,), dtype="i4")
        for step in range(STEPS):
            with pressure.collective:  # collective
                pressure[step, :, mine] = field(step)
        widths[comm.rank] = last - first  # independent


def read(path):
    with h5py.File(path, "r", driver="mpio", comm=comm) as file:
        pressure = file["pressure"]
        assert pressure.attrs["unit"] == "Pa"
        assert file["width"][...].sum() == COLUMNS
        found = numpy.empty((ROWS, last - first))
        for step in range(STEPS):
            with pressure.collective:  # without it, `pressure[step, :, mine]` would be an independent read
                pressure.read_direct(found, numpy.s_[step, :, mine])
            assert (found == field(step)).all(), f"rank {comm.rank}: step {step} is wrong"


if __name__ == "__main__":
    {"write": write, "read": read}[sys.argv[1]](sys.argv[2])
    comm.Barrier()
    if comm.rank == 0:
        print(f"{sys.argv[1]}: {STEPS} steps of {ROWS} x {COLUMNS} by {comm.size} ranks, h5py {h5py.__version__}")
