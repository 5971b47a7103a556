"""as_task.py script args: runs a script like Python, after a check that all ranks are tasks of one space.

An entry of the auxiliary vector marks a process as a task. Reading the next rank's memory by its address shows that both have the
same space. If either check fails, the job ends before the script begins.
"""
import ctypes
import os
import runpy
import sys

from mpi4py import MPI

AUXILIARY_ENTRY = 0x53505641


def is_task():
    libc = ctypes.CDLL(None)
    libc.getauxval.restype = ctypes.c_ulong
    return libc.getauxval(ctypes.c_ulong(AUXILIARY_ENTRY)) != 0


def next_one_can_be_read(comm):
    size, rank = comm.Get_size(), comm.Get_rank()
    mine = ctypes.create_string_buffer(b"memory of rank %d" % rank)
    address = comm.sendrecv(ctypes.addressof(mine), dest=(rank - 1) % size, source=(rank + 1) % size)
    read = ctypes.string_at(address)
    comm.Barrier()  # before any rank frees its memory
    return read == b"memory of rank %d" % ((rank + 1) % size)


def main():
    world = MPI.COMM_WORLD
    if not world.allreduce(is_task(), MPI.LAND):
        sys.exit("as_task: not every rank is a task")
    if not next_one_can_be_read(world):
        sys.exit("as_task: the ranks do not share their memory")
    if world.Get_rank() == 0:
        print(f"all {world.Get_size()} ranks are tasks of one space", flush=True)
    del sys.argv[0]
    sys.path[0] = os.path.dirname(sys.argv[0])
    runpy.run_path(sys.argv[0], run_name="__main__")


main()
