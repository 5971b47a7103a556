#include "mpiio/file/errors.h"

#include <array>
#include <mutex>
#include <string>
#include <tuple>
#include <unordered_set>

#include "base/log.h"
#include "mpiio/file/open_file.h"

namespace shima {
namespace {

struct Row {
  Code code;
  int error_class;
  LogLevel level;  // of the message; lower for errors that programs provoke on purpose
};

// Shima's codes and MPI's error classes, in the order of Code.
const std::array rows{
    Row{Code::ok, MPI_SUCCESS, LogLevel::debug},
    Row{Code::bad_argument, MPI_ERR_ARG, LogLevel::warn},
    Row{Code::bad_count, MPI_ERR_COUNT, LogLevel::warn},
    Row{Code::bad_type, MPI_ERR_TYPE, LogLevel::warn},
    Row{Code::bad_access_mode, MPI_ERR_AMODE, LogLevel::warn},
    Row{Code::bad_file_name, MPI_ERR_BAD_FILE, LogLevel::warn},
    Row{Code::bad_file, MPI_ERR_IO, LogLevel::warn},
    Row{Code::bad_handle, MPI_ERR_FILE, LogLevel::warn},
    Row{Code::not_same, MPI_ERR_NOT_SAME, LogLevel::warn},
    Row{Code::cancelled, MPI_ERR_OTHER, LogLevel::info},
    Row{Code::no_such_file, MPI_ERR_NO_SUCH_FILE, LogLevel::info},
    Row{Code::file_exists, MPI_ERR_FILE_EXISTS, LogLevel::info},
    Row{Code::file_in_use, MPI_ERR_FILE_IN_USE, LogLevel::warn},
    Row{Code::access_denied, MPI_ERR_ACCESS, LogLevel::info},
    Row{Code::read_only, MPI_ERR_READ_ONLY, LogLevel::warn},
    Row{Code::unsupported_operation, MPI_ERR_UNSUPPORTED_OPERATION, LogLevel::warn},
    Row{Code::unsupported_datarep, MPI_ERR_UNSUPPORTED_DATAREP, LogLevel::warn},
    Row{Code::duplicate_datarep, MPI_ERR_DUP_DATAREP, LogLevel::warn},
    Row{Code::conversion, MPI_ERR_CONVERSION, LogLevel::error},
    Row{Code::no_memory, MPI_ERR_NO_MEM, LogLevel::error},
    Row{Code::no_space, MPI_ERR_NO_SPACE, LogLevel::error},
    Row{Code::quota, MPI_ERR_QUOTA, LogLevel::error},
    Row{Code::io, MPI_ERR_IO, LogLevel::error},
    Row{Code::timed_out, MPI_ERR_OTHER, LogLevel::warn},
    Row{Code::peer_lost, MPI_ERR_OTHER, LogLevel::error},
    Row{Code::internal, MPI_ERR_INTERN, LogLevel::error},
};

const Row& row_of(Code code) {
  for (const Row& row : rows) {
    if (row.code == code) return row;
  }
  return rows.back();
}

// A call that fails in a loop logs its error once.
void log_once(LogLevel level, const std::string& text) {
  constexpr std::size_t max_remembered = 1000;
  static auto* lock = new std::mutex;
  static auto* said = new std::unordered_set<std::string>;
  if (!log_enabled(level)) return;
  {
    const std::lock_guard hold(*lock);
    if (said->size() >= max_remembered || !said->insert(text).second) return;
  }
  log_line(level, text);
}

}  // namespace

int mpi_class_of(Code code) { return row_of(code).error_class; }

int raise(MPI_File file, const Error& error) {
  return raise_class(file, mpi_class_of(error.code), error);
}

int raise_class(MPI_File file, int error_class, const Error& error) {
  std::ignore = caught([&]() -> Status {
    log_once(row_of(error.code).level, describe(error));
    return {};
  });
  const OpenFile* open_file = find_open_file(file);
  const ErrorHandler handler =
      open_file != nullptr ? open_file->error_handler() : default_error_handler();
  return handler.call(open_file != nullptr ? file : MPI_FILE_NULL, error_class);
}

}  // namespace shima
