C     The include file mpif.h, in fixed form; see use_mpi_f08.f90.
      subroutine on_error(file, code)
      include 'mpif.h'
      integer file, code, ierr
      integer errors_seen, class_seen, conversions
      common /seen/ errors_seen, class_seen, conversions
      errors_seen = errors_seen + 1
      call MPI_Error_class(code, class_seen, ierr)
      end

      subroutine reading(ub, datatype, count, fb, position,
     &                   extra_state, ierror)
      include 'mpif.h'
      character ub(*), fb(*)
      integer datatype, count, ierror, i
      integer(kind=MPI_OFFSET_KIND) position
      integer(kind=MPI_ADDRESS_KIND) extra_state
      integer errors_seen, class_seen, conversions
      common /seen/ errors_seen, class_seen, conversions
      do i = 1, count
        ub(i) = fb(2 * i)
      end do
      conversions = conversions + 1
      ierror = MPI_SUCCESS
      end

      subroutine extents(datatype, extent, extra_state, ierror)
      include 'mpif.h'
      integer datatype, ierror
      integer(kind=MPI_ADDRESS_KIND) extent, extra_state
      extent = 2
      ierror = MPI_SUCCESS
      end

      subroutine writing(ub, datatype, count, fb, position,
     &                   extra_state, ierror)
      include 'mpif.h'
      character ub(*), fb(*)
      integer datatype, count, ierror, i
      integer(kind=MPI_OFFSET_KIND) position
      integer(kind=MPI_ADDRESS_KIND) extra_state
      integer errors_seen, class_seen, conversions
      common /seen/ errors_seen, class_seen, conversions
      if (extra_state .ne. 4711) stop 2
      do i = 1, count
        fb(2 * i - 1) = ub(i)
        fb(2 * i) = ub(i)
      end do
      conversions = conversions + 1
      ierror = MPI_SUCCESS
      end

      program main
      include 'mpif.h'
      integer n
      parameter (n = 20)
      character letters(n), back(n)
      integer rank, ierr, got, request, handler, fh, i
      integer status(MPI_STATUS_SIZE)
      integer(kind=MPI_OFFSET_KIND) offset
      integer(kind=MPI_ADDRESS_KIND) extra
      external on_error, reading, writing, extents
      integer errors_seen, class_seen, conversions
      common /seen/ errors_seen, class_seen, conversions
      errors_seen = 0
      conversions = 0
      call MPI_Init(ierr)
      call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
      extra = 4711
      call MPI_Register_datarep('twice', reading, writing, extents,
     &                          extra, ierr)
      if (ierr .ne. MPI_SUCCESS) error stop 'registering'
      call MPI_File_open(MPI_COMM_WORLD, 'mpif.out',
     &  MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, fh, ierr)
      if (ierr .ne. MPI_SUCCESS) error stop 'opening'
      offset = 0
      call MPI_File_set_view(fh, offset, MPI_CHARACTER, MPI_CHARACTER,
     &                       'twice', MPI_INFO_NULL, ierr)
      if (ierr .ne. MPI_SUCCESS) error stop 'setting a view'
      do i = 1, n
        letters(i) = achar(97 + 10 * rank)
        back(i) = '?'
      end do
      call MPI_File_write_ordered(fh, letters, n, MPI_CHARACTER,
     &                            status, ierr)
      call MPI_Get_count(status, MPI_CHARACTER, got, ierr)
      if (got .ne. n) error stop 'count of a write'
      offset = n * rank
      call MPI_File_iread_at(fh, offset, back, n, MPI_CHARACTER,
     &                       request, ierr)
      call MPI_Wait(request, status, ierr)
      do i = 1, n
        if (back(i) .ne. letters(i)) error stop 'what was read back'
      end do
      if (conversions .lt. 2) error stop 'no conversion'
      call MPI_File_create_errhandler(on_error, handler, ierr)
      call MPI_File_set_errhandler(fh, handler, ierr)
      offset = -1
      call MPI_File_read_at(fh, offset, back, n, MPI_CHARACTER,
     &                      status, ierr)
      if (ierr .eq. MPI_SUCCESS) error stop 'an error was lost'
      if (errors_seen .ne. 1) error stop 'the error handler'
      if (class_seen .ne. MPI_ERR_ARG) error stop 'the error class'
      call MPI_Errhandler_free(handler, ierr)
      call MPI_File_close(fh, ierr)
      call MPI_Finalize(ierr)
      end
