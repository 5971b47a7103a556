#include "mpiio/file/access_mode.h"

#include <fmt/format.h>
#include <mpi.h>

namespace shima {
namespace {

std::unexpected<Error> bad_mode(const char* rule) {
  return fail(Code::bad_access_mode, fmt::format("opening a file: {}", rule));
}

}  // namespace

Result<AccessMode> access_mode_of(int amode) {
  constexpr int all_bits = MPI_MODE_RDONLY | MPI_MODE_RDWR | MPI_MODE_WRONLY | MPI_MODE_CREATE |
                           MPI_MODE_EXCL | MPI_MODE_DELETE_ON_CLOSE | MPI_MODE_UNIQUE_OPEN |
                           MPI_MODE_SEQUENTIAL | MPI_MODE_APPEND;
  const auto has = [amode](int bit) { return (amode & bit) != 0; };
  if ((amode & ~all_bits) != 0) return bad_mode("the mode has bits that MPI does not define");
  if (has(MPI_MODE_RDONLY) + has(MPI_MODE_RDWR) + has(MPI_MODE_WRONLY) != 1)
    return bad_mode(
        "the mode must have exactly one of MPI_MODE_RDONLY, MPI_MODE_RDWR and MPI_MODE_WRONLY");
  if (has(MPI_MODE_RDONLY) && (has(MPI_MODE_CREATE) || has(MPI_MODE_EXCL)))
    return bad_mode("MPI_MODE_CREATE and MPI_MODE_EXCL cannot be combined with MPI_MODE_RDONLY");
  if (has(MPI_MODE_RDWR) && has(MPI_MODE_SEQUENTIAL))
    return bad_mode("MPI_MODE_SEQUENTIAL cannot be combined with MPI_MODE_RDWR");
  return AccessMode{.read = !has(MPI_MODE_WRONLY),
                    .write = !has(MPI_MODE_RDONLY),
                    .create = has(MPI_MODE_CREATE),
                    .exclusive = has(MPI_MODE_EXCL),
                    .delete_on_close = has(MPI_MODE_DELETE_ON_CLOSE),
                    .unique_open = has(MPI_MODE_UNIQUE_OPEN),
                    .sequential = has(MPI_MODE_SEQUENTIAL),
                    .append = has(MPI_MODE_APPEND)};
}

Status refuse_reading() {
  return fail(Code::access_denied, "reading a file that was opened with MPI_MODE_WRONLY");
}

Status refuse_writing() {
  return fail(Code::read_only, "changing a file that was opened with MPI_MODE_RDONLY");
}

Status refuse_offsets() {
  return fail(
      Code::unsupported_operation,
      "a file opened with MPI_MODE_SEQUENTIAL is used through the shared file pointer only");
}

}  // namespace shima
