// From Shima's errors to MPI's: classes, handlers, and the one place where an entry point may fail.
//
// MPI gives a number back and lets the file's error handler decide whether anybody hears of it;
// what went wrong and how to mend it is in our message, which is logged once here.
#pragma once

#include <mpi.h>

#include <functional>
#include <memory>

#include "base/result.h"

namespace shima {

[[nodiscard]] int mpi_class_of(Code code);

// A program's function, whatever its language.
using ErrorFunction = std::function<void(MPI_File file, int error_code)>;
using FortranErrorFunction = void(int* file, int* error_code);

// An error handler as a file holds it. Copies share the MPI object.
class ErrorHandler {
 public:
  ErrorHandler() = default;
  // Keeps the MPI object behind `handle` alive; bad_argument if it is not a handler for files.
  [[nodiscard]] static Result<ErrorHandler> from(MPI_Errhandler handle);

  // A new reference, to be freed by the receiver.
  [[nodiscard]] MPI_Errhandler reference() const;
  // What an entry point returns after `error_code`; does not return if the handler is fatal.
  int call(MPI_File file, int error_code) const;

 private:
  MPI_Errhandler handle_ = MPI_ERRORS_RETURN;
  ErrorFunction function_;
  std::shared_ptr<void> kept_;  // gives the reference back
};

// An MPI handle for a user's function, usable on files; bad_argument if it is null.
[[nodiscard]] Result<MPI_Errhandler> create_error_handler(MPI_File_errhandler_function* function);
[[nodiscard]] Result<MPI_Errhandler> create_error_handler(FortranErrorFunction* function);

// The handler of MPI_FILE_NULL: for calls without a file, and for files just opened.
[[nodiscard]] ErrorHandler default_error_handler();
void set_default_error_handler(const ErrorHandler& handler);

// Logs an error and calls the handler of the file (of MPI_FILE_NULL if it is none of ours).
int raise(MPI_File file, const Error& error);
// The same for a class that Shima itself has no code for.
int raise_class(MPI_File file, int error_class, const Error& error);

// Runs the body of an entry point: a Status becomes what MPI returns, and nothing of ours is
// thrown.
template <class Body>
int guarded(MPI_File file, Body body) {
  const Status status = caught([&]() -> Status { return body(); });
  return status ? MPI_SUCCESS : raise(file, status.error());
}

}  // namespace shima
