! The module mpi; see use_mpi_f08.f90.
module callbacks
  use mpi
  implicit none
  integer :: errors_seen = 0, class_seen = -1, conversions = 0, fh
  logical :: right_file = .false.
contains
  subroutine on_error(file, code)
    integer :: file, code, ierr
    errors_seen = errors_seen + 1
    right_file = file == fh
    call MPI_Error_class(code, class_seen, ierr)
  end subroutine
  subroutine reading(userbuf, datatype, count, filebuf, position, extra_state, ierror)
    integer :: datatype, count, ierror
    character :: userbuf(*), filebuf(*)
    integer(MPI_OFFSET_KIND) :: position
    integer(MPI_ADDRESS_KIND) :: extra_state
    integer :: i
    if (extra_state /= 4711) stop 2
    do i = 1, count
      userbuf(i) = filebuf(2 * i)
    end do
    conversions = conversions + 1
    ierror = MPI_SUCCESS
  end subroutine
  subroutine writing(userbuf, datatype, count, filebuf, position, extra_state, ierror)
    integer :: datatype, count, ierror
    character :: userbuf(*), filebuf(*)
    integer(MPI_OFFSET_KIND) :: position
    integer(MPI_ADDRESS_KIND) :: extra_state
    integer :: i
    do i = 1, count
      filebuf(2 * i - 1) = userbuf(i)
      filebuf(2 * i) = userbuf(i)
    end do
    conversions = conversions + 1
    ierror = MPI_SUCCESS
  end subroutine
  subroutine extents(datatype, extent, extra_state, ierror)
    integer :: datatype, ierror
    integer(MPI_ADDRESS_KIND) :: extent, extra_state
    extent = 2
    ierror = MPI_SUCCESS
  end subroutine
end module

program use_mpi
  use mpi
  use callbacks
  implicit none
  integer, parameter :: n = 20
  character, asynchronous :: letters(n), back(n)
  integer :: rank, ranks, ierr, got, request, handler, status(MPI_STATUS_SIZE)
  integer(MPI_OFFSET_KIND) :: offset
  integer(MPI_ADDRESS_KIND) :: extra
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  letters = achar(97 + 10 * rank)
  extra = 4711
  call MPI_Register_datarep('twice', reading, writing, extents, extra, ierr)
  if (ierr /= MPI_SUCCESS) error stop 'registering'
  call MPI_File_open(MPI_COMM_WORLD, 'use_mpi.out', MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, fh, ierr)
  if (ierr /= MPI_SUCCESS) error stop 'opening'
  offset = 0
  call MPI_File_set_view(fh, offset, MPI_CHARACTER, MPI_CHARACTER, 'twice', MPI_INFO_NULL, ierr)
  if (ierr /= MPI_SUCCESS) error stop 'setting a view'
  offset = n * rank
  call MPI_File_iwrite_at(fh, offset, letters, n, MPI_CHARACTER, request, ierr)
  call MPI_Wait(request, status, ierr)
  call MPI_Get_count(status, MPI_CHARACTER, got, ierr)
  if (got /= n) error stop 'count of a write'
  back = '?'
  call MPI_File_read_at_all_begin(fh, offset, back, n, MPI_CHARACTER, ierr)
  call MPI_File_read_at_all_end(fh, back, status, ierr)
  if (any(back /= letters)) error stop 'what was read back'
  if (conversions < 2) error stop 'no conversion'
  call MPI_File_create_errhandler(on_error, handler, ierr)
  call MPI_File_set_errhandler(fh, handler, ierr)
  offset = -1
  call MPI_File_read_at(fh, offset, back, n, MPI_CHARACTER, status, ierr)
  if (ierr == MPI_SUCCESS) error stop 'an error was lost'
  if (errors_seen /= 1 .or. class_seen /= MPI_ERR_ARG .or. .not. right_file) error stop 'the error handler'
  call MPI_Errhandler_free(handler, ierr)
  call MPI_File_close(fh, ierr)
  call MPI_Finalize(ierr)
end program
