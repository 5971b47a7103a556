// Error handlers of files; that of MPI_FILE_NULL is the default for files opened later.
#include "mpiio/entry/entry.h"

using namespace shima;

int MPI_File_create_errhandler(MPI_File_errhandler_function* function, MPI_Errhandler* errhandler) {
  return guarded(MPI_FILE_NULL, [&]() -> Status {
    SHIMA_TRY_ASSIGN(*errhandler, create_error_handler(function));
    return {};
  });
}
SHIMA_EXPORT(File_create_errhandler);

int MPI_File_set_errhandler(MPI_File fh, MPI_Errhandler errhandler) {
  return guarded(fh, [&]() -> Status {
    SHIMA_TRY_ASSIGN(const ErrorHandler handler, ErrorHandler::from(errhandler));
    if (fh == MPI_FILE_NULL) {
      set_default_error_handler(handler);
      return {};
    }
    SHIMA_TRY_ASSIGN(OpenFile * file, open_file_of(fh));
    file->set_error_handler(handler);
    return {};
  });
}
SHIMA_EXPORT(File_set_errhandler);

int MPI_File_get_errhandler(MPI_File fh, MPI_Errhandler* errhandler) {
  return guarded(fh, [&]() -> Status {
    if (fh == MPI_FILE_NULL) {
      *errhandler = default_error_handler().reference();
      return {};
    }
    SHIMA_TRY_ASSIGN(OpenFile * file, open_file_of(fh));
    *errhandler = file->error_handler().reference();
    return {};
  });
}
SHIMA_EXPORT(File_get_errhandler);

int MPI_File_call_errhandler(MPI_File fh, int errorcode) {
  return guarded(fh, [&]() -> Status {
    if (fh == MPI_FILE_NULL) {
      default_error_handler().call(fh, errorcode);
      return {};
    }
    SHIMA_TRY_ASSIGN(OpenFile * file, open_file_of(fh));
    file->error_handler().call(fh, errorcode);
    return {};
  });
}
SHIMA_EXPORT(File_call_errhandler);
