#!/usr/bin/env python3
"""One netCDF-4 file, written and read by all ranks through the netCDF4 package.

    shima run -n 4 python netcdf4_parallel.py write weather.nc
    shima run -n 4 python netcdf4_parallel.py read  weather.nc

Every rank holds some latitudes of each level of a model and appends a record per time step. A variable with an unlimited
dimension must be written collectively, because the file grows. Nothing here refers to Shima.

Needs netCDF4 built against a parallel netCDF (Debian: libnetcdf-mpi-dev; by pip with NETCDF4_DIR and HDF5_DIR set to
the parallel libraries, CC=mpicc and --no-binary netCDF4).
"""

import sys

from mpi4py import MPI
import netCDF4
import numpy

STEPS, LEVELS, LATITUDES, LONGITUDES = 4, 6, 90, 144
comm = MPI.COMM_WORLD

first, last = (LATITUDES * rank // comm.size for rank in (comm.rank, comm.rank + 1))
mine = slice(first, last)


def temperature(step):
    """The data that this rank computes: every value identifies its place."""
    levels, latitudes, longitudes = numpy.mgrid[0:LEVELS, first:last, 0:LONGITUDES]
    return ((step * LEVELS + levels) * LATITUDES + latitudes) * LONGITUDES + longitudes + 0.25


def write(path):
    with netCDF4.Dataset(path, "w", parallel=True, comm=comm, info=MPI.Info()) as data:
        # All ranks make the calls that change the structure of the file, with the same arguments.
        sizes = {"time": None, "level": LEVELS, "latitude": LATITUDES, "longitude": LONGITUDES}
        for name, size in sizes.items():
            data.createDimension(name, size)
        variable = data.createVariable("temperature", "f8", tuple(sizes))
        variable.units = "K"
        variable.set_collective(True)
        for step in range(STEPS):
            variable[step, :, mine, :] = temperature(step)  # collective
        latitude = data.createVariable("latitude", "f4", ("latitude",))
        latitude[mine] = numpy.linspace(-89, 89, LATITUDES)[mine]  # independent


def read(path):
    with netCDF4.Dataset(path, "r", parallel=True, comm=comm, info=MPI.Info()) as data:
        variable = data["temperature"]
        assert variable.units == "K" and len(data.dimensions["time"]) == STEPS
        variable.set_collective(True)
        for step in range(STEPS):
            found = variable[step, :, mine, :]
            assert (found == temperature(step)).all(), f"rank {comm.rank}: step {step} is wrong"
        assert numpy.allclose(data["latitude"][:], numpy.linspace(-89, 89, LATITUDES))


if __name__ == "__main__":
    {"write": write, "read": read}[sys.argv[1]](sys.argv[2])
    comm.Barrier()
    if comm.rank == 0:
        print(f"{sys.argv[1]}: {STEPS} steps by {comm.size} ranks, netCDF4 {netCDF4.__version__}")
