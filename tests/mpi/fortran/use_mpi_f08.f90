! The same program as for the other two bindings: letters written by a nonblocking collective call
! and read back, an error that reaches a Fortran procedure, a data representation made of Fortran
! procedures.
module callbacks
  use mpi_f08
  implicit none
  integer :: errors_seen = 0, class_seen = -1, conversions = 0
  logical :: right_file = .false.
  type(MPI_File) :: fh
contains
  subroutine on_error(file, code)
    type(MPI_File) :: file
    integer :: code
    integer :: ierr
    errors_seen = errors_seen + 1
    right_file = file == fh
    call MPI_Error_class(code, class_seen, ierr)
  end subroutine
  subroutine reading(userbuf, datatype, count, filebuf, position, extra_state, ierror)
    use, intrinsic :: iso_c_binding, only : c_ptr, c_f_pointer
    type(c_ptr), value :: userbuf, filebuf
    type(MPI_Datatype) :: datatype
    integer :: count, ierror
    integer(MPI_OFFSET_KIND) :: position
    integer(MPI_ADDRESS_KIND) :: extra_state
    character, pointer :: to(:), from(:)
    integer :: i
    call c_f_pointer(userbuf, to, [count])
    call c_f_pointer(filebuf, from, [2 * count])
    if (extra_state /= 4711) error stop 'reading: extra state'
    do i = 1, count
      to(i) = from(2 * i)
    end do
    conversions = conversions + 1
    ierror = MPI_SUCCESS
  end subroutine
  subroutine writing(userbuf, datatype, count, filebuf, position, extra_state, ierror)
    use, intrinsic :: iso_c_binding, only : c_ptr, c_f_pointer
    type(c_ptr), value :: userbuf, filebuf
    type(MPI_Datatype) :: datatype
    integer :: count, ierror
    integer(MPI_OFFSET_KIND) :: position
    integer(MPI_ADDRESS_KIND) :: extra_state
    character, pointer :: to(:), from(:)
    integer :: i
    call c_f_pointer(userbuf, from, [count])
    call c_f_pointer(filebuf, to, [2 * count])
    do i = 1, count
      to(2 * i - 1 : 2 * i) = from(i)
    end do
    conversions = conversions + 1
    ierror = MPI_SUCCESS
  end subroutine
  subroutine extents(datatype, extent, extra_state, ierror)
    type(MPI_Datatype) :: datatype
    integer(MPI_ADDRESS_KIND) :: extent, extra_state
    integer :: ierror
    extent = 2
    ierror = MPI_SUCCESS
  end subroutine
end module

program use_mpi_f08
  use mpi_f08
  use callbacks
  implicit none
  integer, parameter :: n = 20
  character, asynchronous :: letters(n), back(n)
  integer :: rank, ranks, ierr, got
  type(MPI_Request) :: request
  type(MPI_Status) :: status
  type(MPI_Errhandler) :: handler
  integer(MPI_OFFSET_KIND) :: offset
  integer(MPI_ADDRESS_KIND) :: extra
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  letters = achar(97 + 10 * rank)
  extra = 4711
  call MPI_Register_datarep('twice', reading, writing, extents, extra)
  call MPI_File_open(MPI_COMM_WORLD, 'use_mpi_f08.out', MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, fh)
  offset = 0
  call MPI_File_set_view(fh, offset, MPI_CHARACTER, MPI_CHARACTER, 'twice', MPI_INFO_NULL)
  offset = n * rank
  call MPI_File_iwrite_at_all(fh, offset, letters, n, MPI_CHARACTER, request)
  call MPI_Wait(request, status)
  call MPI_Get_count(status, MPI_CHARACTER, got)
  if (got /= n) error stop 'count of a write'
  back = '?'
  call MPI_File_read_at_all(fh, offset, back, n, MPI_CHARACTER, status)
  if (any(back /= letters)) error stop 'what was read back'
  if (conversions < 2) error stop 'no conversion'
  call MPI_File_create_errhandler(on_error, handler)
  call MPI_File_set_errhandler(fh, handler)
  offset = -1
  call MPI_File_read_at(fh, offset, back, n, MPI_CHARACTER, status, ierr)
  if (ierr == MPI_SUCCESS) error stop 'an error was lost'
  if (errors_seen /= 1 .or. class_seen /= MPI_ERR_ARG .or. .not. right_file) error stop 'the error handler'
  call MPI_Errhandler_free(handler)
  call MPI_File_close(fh)
  call MPI_Finalize()
end program
