// Error handlers of files.
//
// MPI's own file handlers cannot be used, because an MPI calls them with its own file object. So a
// handler that the program creates for files is a real MPI error handler for communicators, whose
// function is never called: freeing and comparing handles work. The user's function is stored here
// by handle. A file keeps the MPI object alive after the program frees its handle: MPI has no call
// that adds a reference, but setting a handler on a communicator and getting it again adds one.
#include <map>
#include <mutex>

#include "base/log.h"
#include "mpiio/file/errors.h"
#include "mpiio/file/open_file.h"
#include "mpiio/mpi/private_comm.h"

// New in Open MPI 5; with an older library its address is null, which equals no handle.
#ifdef OPEN_MPI
extern "C" {
#pragma weak ompi_mpi_errors_abort
}
#endif

namespace shima {
namespace {

std::mutex& lock() {
  static auto* instance = new std::mutex;
  return *instance;
}

std::map<MPI_Errhandler, ErrorFunction>& functions() {
  static auto* instance = new std::map<MPI_Errhandler, ErrorFunction>;
  return *instance;
}

ErrorHandler& default_handler() {
  static auto* instance = new ErrorHandler;
  return *instance;
}

void never_called(MPI_Comm*, int*, ...) {}

bool is_abort(MPI_Errhandler handle) {
#ifdef MPI_ERRORS_ABORT
  if (handle == MPI_ERRORS_ABORT) return true;
#endif
  return handle == MPI_ERRORS_ARE_FATAL;
}

bool is_predefined(MPI_Errhandler handle) {
  return handle == MPI_ERRORS_RETURN || is_abort(handle);
}

// A communicator that only carries a handler from set to get. It is never used for a call, so a
// fatal handler does no harm.
MPI_Comm carrier() {
  static const MPI_Comm comm = [] {
    MPI_Comm made = MPI_COMM_NULL;
    PMPI_Comm_split(private_comm(), 0, 0, &made);
    return made;
  }();
  return comm;
}

// Predefined handlers are counted too: a program frees the handle that it received.
MPI_Errhandler add_reference(MPI_Errhandler handle) {
  MPI_Errhandler reference = MPI_ERRHANDLER_NULL;
  PMPI_Comm_set_errhandler(carrier(), handle);
  PMPI_Comm_get_errhandler(carrier(), &reference);
  PMPI_Comm_set_errhandler(carrier(), MPI_ERRORS_RETURN);
  return reference;
}

void drop_reference(MPI_Errhandler handle) {
  int finalized = 0;
  PMPI_Finalized(&finalized);
  if (finalized == 0) PMPI_Errhandler_free(&handle);
}

}  // namespace

Result<ErrorHandler> ErrorHandler::from(MPI_Errhandler handle) {
  ErrorHandler handler;
  handler.handle_ = handle;
  if (is_predefined(handle)) return handler;
  const std::lock_guard hold(lock());
  const auto known = functions().find(handle);
  if (known == functions().end()) {
    return fail(Code::bad_argument,
                "setting an error handler: it was not made by MPI_File_create_errhandler");
  }
  handler.function_ = known->second;
  const MPI_Errhandler reference = add_reference(handle);
  handler.kept_ = std::shared_ptr<void>(nullptr, [reference](void*) { drop_reference(reference); });
  return handler;
}

MPI_Errhandler ErrorHandler::reference() const {
  const std::lock_guard hold(lock());
  return add_reference(handle_);
}

int ErrorHandler::call(MPI_File file, int error_code) const {
  if (is_abort(handle_)) {
    log(LogLevel::error, "the file's error handler is fatal: the job is aborted");
    PMPI_Abort(MPI_COMM_WORLD, error_code);
  }
  return function_ ? function_(file, error_code) : error_code;
}

namespace {

Result<MPI_Errhandler> handler_for(ErrorFunction function) {
  MPI_Errhandler handle = MPI_ERRHANDLER_NULL;
  if (PMPI_Comm_create_errhandler(never_called, &handle) != MPI_SUCCESS)
    return fail(Code::internal, "creating an error handler");
  const std::lock_guard hold(lock());
  functions()[handle] = std::move(function);
  return handle;
}

std::unexpected<Error> no_function() {
  return fail(Code::bad_argument, "creating an error handler: no function was given");
}

}  // namespace

Result<MPI_Errhandler> create_error_handler(MPI_File_errhandler_function* function) {
  if (function == nullptr) return no_function();
  return handler_for([function](MPI_File file, int error_code) {
    function(&file, &error_code);
    return error_code;
  });
}

Result<MPI_Errhandler> create_error_handler(FortranErrorFunction* function) {
  if (function == nullptr) return no_function();
  return handler_for([function](MPI_File file, int error_code) {
    int number = number_of(file);
    function(&number, &error_code);
    return error_code;
  });
}

ErrorHandler default_error_handler() {
  const std::lock_guard hold(lock());
  return default_handler();
}

void set_default_error_handler(const ErrorHandler& handler) {
  ErrorHandler previous = handler;
  const std::lock_guard hold(lock());
  std::swap(default_handler(), previous);
}

}  // namespace shima
