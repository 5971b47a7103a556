// From Shima's errors to MPI's: classes, handlers, and the guard of every entry point.
//
// MPI returns a number and lets the file's error handler decide what happens. Our message has the
// cause and the remedy; it is logged once, here.
#pragma once

#include <mpi.h>

#include <functional>
#include <memory>

#include "base/result.h"

namespace shima {

[[nodiscard]] int mpi_class_of(Code code);

// A program's function, in any language; returns the code that it has left.
using ErrorFunction = std::function<int(MPI_File file, int error_code)>;
using FortranErrorFunction = void(int* file, int* error_code);

// An error handler, as a file holds it. Copies share the MPI object.
class ErrorHandler {
 public:
  ErrorHandler() = default;
  // Keeps the MPI object behind `handle` alive; bad_argument if it is not a handler for files.
  [[nodiscard]] static Result<ErrorHandler> from(MPI_Errhandler handle);

  // A new reference, which the receiver frees.
  [[nodiscard]] MPI_Errhandler reference() const;
  // The return value of an entry point after `error_code`: what the program's function has left of
  // it. Does not return if the handler is fatal.
  int call(MPI_File file, int error_code) const;

 private:
  MPI_Errhandler handle_ = MPI_ERRORS_RETURN;
  ErrorFunction function_;
  std::shared_ptr<void> kept_;  // releases the reference
};

// An MPI handle for a user's function, usable on files; bad_argument if it is null.
[[nodiscard]] Result<MPI_Errhandler> create_error_handler(MPI_File_errhandler_function* function);
[[nodiscard]] Result<MPI_Errhandler> create_error_handler(FortranErrorFunction* function);

// The handler of MPI_FILE_NULL: for calls without a file, and the initial handler of new files.
[[nodiscard]] ErrorHandler default_error_handler();
void set_default_error_handler(const ErrorHandler& handler);

// Logs an error and calls the handler of the file (of MPI_FILE_NULL if the file is unknown).
int raise(MPI_File file, const Error& error);
// The same for an error class that has no Code.
int raise_class(MPI_File file, int error_class, const Error& error);

// Runs the body of an entry point and converts its Status to MPI's return value; nothing is thrown.
template <class Body>
int guarded(MPI_File file, Body body) {
  const Status status = caught([&]() -> Status { return body(); });
  return status ? MPI_SUCCESS : raise(file, status.error());
}

}  // namespace shima
