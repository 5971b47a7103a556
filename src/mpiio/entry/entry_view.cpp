// Views and file positions.
#include <fmt/format.h>

#include <cstdio>
#include <functional>

#include "group/pointer/shared_pointer.h"
#include "mpiio/datatype/datatypes.h"
#include "mpiio/datatype/type_decode.h"
#include "mpiio/entry/entry.h"
#include "mpiio/file/access_mode.h"
#include "mpiio/file/info.h"
#include "mpiio/mpi/await.h"

namespace shima {
namespace {

// Where a view of a sequential file starts: at the shared pointer, after all ranks have entered.
// Collective; a member that requests another place fails all.
Result<std::int64_t> current_position(OpenFile& file, MPI_Offset wanted) {
  SHIMA_TRY(file.shared_pointer());
  Result<std::uint64_t> claim = 0;
  if (wanted != MPI_DISPLACEMENT_CURRENT)
    claim = fail(Code::bad_argument,
                 "setting a view: a file opened with MPI_MODE_SEQUENTIAL takes no displacement but "
                 "MPI_DISPLACEMENT_CURRENT");
  return file.file().claim_in_order(claim);
}

// The arguments that must be equal on all ranks: the representation, and the etype's extent in it.
std::uint64_t digest_of(const View& view) {
  return std::hash<std::string>{}(fmt::format("{} {}", view.datarep(), view.etype_extent()));
}

// A member's part of a collective set_view.
struct NewView {
  std::shared_ptr<const View> view;
  Hints hints;
  std::uint64_t digest = 0;
};

Result<NewView> new_view(OpenFile& file, const View::Request& request, MPI_Info info) {
  NewView made;
  SHIMA_TRY_ASSIGN(made.view, View::make(request, file.mode()));
  made.hints = file.file().hints();
  if (info != MPI_INFO_NULL) made.hints = resolve(file.file().hints(), settings_of(info));
  made.digest = digest_of(*made.view);
  // The exchange of hints is the meeting after which all pointers start at 0.
  if (SharedPointer* const shared = file.file().shared_pointer()) shared->prepare(0);
  return made;
}

Status set_view(OpenFile& file, View::Request request, MPI_Info info) {
  SHIMA_TRY(file.settle());
  std::int64_t position = 0;
  if (file.mode().sequential) {
    SHIMA_TRY_ASSIGN(position, current_position(file, request.displacement));
  }
  auto wanted = caught([&]() -> Result<NewView> {
    if (file.mode().sequential) {
      SHIMA_TRY_ASSIGN(const FileOffset place, file.view()->place_of(ViewOffset{position}));
      request.displacement = place.value;
    }
    return new_view(file, request, info);
  });
  const std::uint64_t digest = wanted ? wanted->digest : 0;
  auto hints = wanted ? Result<Hints>(std::move(wanted->hints)) : std::unexpected(wanted.error());
  SHIMA_TRY(file.file().set_hints(hints, digest));
  if (SharedPointer* const shared = file.file().shared_pointer()) shared->commit();
  file.set_view(std::move(wanted->view));
  ++file.file().counters().views_set;
  return {};
}

// The position from which a seek counts, in view bytes.
Result<ViewOffset> seek_base(OpenFile& file, const View& view, int whence) {
  switch (whence) {
    case MPI_SEEK_CUR:
      return file.position();
    case MPI_SEEK_END: {
      SHIMA_TRY_ASSIGN(const FileOffset end, file.file().size());
      return view.etype_start(view.etypes_before(end));
    }
    default:
      return fail(Code::bad_argument,
                  fmt::format("seeking: {} is not MPI_SEEK_SET, _CUR or _END", whence));
  }
}

Status seek(OpenFile& file, MPI_Offset offset, int whence) {
  SHIMA_TRY(check_not_sequential(file.mode()));
  if (whence == MPI_SEEK_SET) return file.seek_to(offset);
  const std::shared_ptr<const View> view = file.view();
  SHIMA_TRY_ASSIGN(const ViewOffset base, seek_base(file, *view, whence));
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(offset, view->etype_size(), &bytes) ||
      __builtin_add_overflow(bytes, base.value, &bytes) || bytes < 0) {
    return fail(
        Code::bad_argument,
        fmt::format("seeking by {} leads outside the view: a position is from 0 to 2^63 - 1",
                    offset));
  }
  file.set_position(ViewOffset{bytes});
  return {};
}

template <class Extent>
int get_type_extent(MPI_File fh, MPI_Datatype datatype, Extent* extent) {
  return on_file(fh, [&](OpenFile& file) -> Status {
    if (datatype == MPI_DATATYPE_NULL)
      return fail(Code::bad_type, "querying an extent: the datatype is MPI_DATATYPE_NULL");
    if (const auto representation = file.view()->representation()) {
      SHIMA_TRY_ASSIGN(const TypeMap in_file, decode_type_in_file(datatype, *representation));
      *extent = static_cast<Extent>(in_file.extent);
      return {};
    }
    MPI_Count lower_bound = 0;
    MPI_Count in_memory = 0;
    SHIMA_TRY(checked(PMPI_Type_get_extent_x(datatype, &lower_bound, &in_memory),
                      "querying the extent of a datatype"));
    *extent = static_cast<Extent>(in_memory);
    return {};
  });
}

}  // namespace
}  // namespace shima

using namespace shima;

int MPI_File_set_view(MPI_File fh, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype,
                      const char* datarep, MPI_Info info) {
  return on_file_traced(
      fh, {call::file_set_view, __builtin_return_address(0)}, [&](OpenFile& file) {
        const View::Request request{disp, etype, filetype,
                                    datarep == nullptr ? std::string_view{} : datarep};
        return set_view(file, request, info);
      });
}
SHIMA_EXPORT(File_set_view);

int MPI_File_get_view(MPI_File fh, MPI_Offset* disp, MPI_Datatype* etype, MPI_Datatype* filetype,
                      char* datarep) {
  return on_file(fh, [&](OpenFile& file) -> Status {
    const std::shared_ptr<const View> view = file.view();
    *disp = view->displacement();
    *etype = keep_type(view->etype());
    *filetype = keep_type(view->filetype());
    std::snprintf(datarep, MPI_MAX_DATAREP_STRING, "%s", view->datarep().c_str());
    return {};
  });
}
SHIMA_EXPORT(File_get_view);

int MPI_File_seek(MPI_File fh, MPI_Offset offset, int whence) {
  return on_file(fh, [&](OpenFile& file) { return seek(file, offset, whence); });
}
SHIMA_EXPORT(File_seek);

int MPI_File_get_position(MPI_File fh, MPI_Offset* offset) {
  return on_file(fh, [&](OpenFile& file) -> Status {
    SHIMA_TRY(check_not_sequential(file.mode()));
    *offset = file.etype_position();
    return {};
  });
}
SHIMA_EXPORT(File_get_position);

int MPI_File_get_byte_offset(MPI_File fh, MPI_Offset offset, MPI_Offset* disp) {
  return on_file(fh, [&](OpenFile& file) -> Status {
    const std::shared_ptr<const View> view = file.view();
    SHIMA_TRY_ASSIGN(const ViewOffset start, view->etype_start(offset));
    SHIMA_TRY_ASSIGN(const FileOffset place, view->place_of(start));
    *disp = place.value;
    return {};
  });
}
SHIMA_EXPORT(File_get_byte_offset);

int MPI_File_get_type_extent(MPI_File fh, MPI_Datatype datatype, MPI_Aint* extent) {
  return get_type_extent(fh, datatype, extent);
}
SHIMA_EXPORT(File_get_type_extent);

#if SHIMA_LARGE_COUNTS
int MPI_File_get_type_extent_c(MPI_File fh, MPI_Datatype datatype, MPI_Count* extent) {
  return get_type_extent(fh, datatype, extent);
}
SHIMA_EXPORT(File_get_type_extent_c);
#endif
