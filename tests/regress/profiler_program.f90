! Like profiler_program.c, and an error handler, which Shima itself calls in Fortran.
module handling
  implicit none
  integer :: handled = 0
contains
  subroutine handler(file, code)
    integer :: file, code
    handled = handled + 1
  end subroutine
end module

program profiled
  use mpi
  use handling
  implicit none
  integer :: code, rank, file, errhandler
  integer(kind=MPI_OFFSET_KIND) :: offset
  integer :: numbers(25)
  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  numbers = rank
  call MPI_File_open(MPI_COMM_WORLD, 'fdata', MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, file, code)
  call MPI_File_create_errhandler(handler, errhandler, code)
  call MPI_File_set_errhandler(file, errhandler, code)
  offset = 100 * rank
  call MPI_File_write_at_all(file, offset, numbers, 25, MPI_INTEGER, MPI_STATUS_IGNORE, code)
  call MPI_File_seek(file, -1_MPI_OFFSET_KIND, MPI_SEEK_SET, code)
  call MPI_File_close(file, code)
  call MPI_Finalize(code)
  if (handled /= 1) stop 1
end program
