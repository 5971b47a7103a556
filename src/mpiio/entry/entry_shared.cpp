// Calls on the shared file pointer itself; entry_data.cpp moves data at it.
#include <fmt/format.h>

#include "mpiio/entry/entry.h"
#include "mpiio/file/access_mode.h"

namespace shima {
namespace {

// The target of a seek, in view bytes; called by the rank that carries it out.
Result<std::int64_t> target_of(OpenFile& file, MPI_Offset offset, int whence) {
  const auto view = file.view();
  std::int64_t base = 0;
  if (whence == MPI_SEEK_CUR) {
    SHIMA_TRY_ASSIGN(base, file.shared_position());
  } else if (whence == MPI_SEEK_END) {
    SHIMA_TRY_ASSIGN(const FileOffset end, file.file().size());
    SHIMA_TRY_ASSIGN(const ViewOffset start, view->etype_start(view->etypes_before(end)));
    base = start.value;
  } else if (whence != MPI_SEEK_SET) {
    return fail(Code::bad_argument,
                fmt::format("seeking: {} is not MPI_SEEK_SET, _CUR or _END", whence));
  }
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(offset, view->etype_size(), &bytes) ||
      __builtin_add_overflow(bytes, base, &bytes) || bytes < 0)
    return fail(
        Code::bad_argument,
        fmt::format("seeking by {} leads outside the view: a position is from 0 to 2^63 - 1",
                    offset));
  return bytes;
}

Status seek_shared(OpenFile& file, MPI_Offset offset, int whence) {
  SHIMA_TRY(check_not_sequential(file.mode()));
  SHIMA_TRY(file.settle());
  SHIMA_TRY_ASSIGN(SharedPointer* const pointer, file.shared_pointer());
  const auto move = [&]() -> Status {
    SHIMA_TRY_ASSIGN(const std::int64_t target, target_of(file, offset, whence));
    return pointer->set(target);
  };
  return file.file().first_member_does("seeking with the shared pointer of",
                                       std::pair<std::int64_t, std::int64_t>(offset, whence), move);
}

}  // namespace
}  // namespace shima

using namespace shima;

int MPI_File_seek_shared(MPI_File fh, MPI_Offset offset, int whence) {
  return on_file(fh, [&](OpenFile& file) { return seek_shared(file, offset, whence); });
}
SHIMA_EXPORT(File_seek_shared);

int MPI_File_get_position_shared(MPI_File fh, MPI_Offset* offset) {
  return on_file(fh, [&](OpenFile& file) -> Status {
    SHIMA_TRY(check_not_sequential(file.mode()));
    SHIMA_TRY_ASSIGN(const std::int64_t position, file.shared_position());
    *offset = position / file.view()->etype_size();
    return {};
  });
}
SHIMA_EXPORT(File_get_position_shared);
