#include "mpiio/file/view.h"

#include <fmt/format.h>

#include "mpiio/datatype/datatypes.h"
#include "pattern/cursor.h"

namespace shima {
namespace {

// The sum of displacement and tiles stays below 2^63.
constexpr MPI_Offset max_displacement = MPI_Offset{1} << 61;

Status check_displacement(MPI_Offset displacement) {
  if (displacement >= 0 && displacement <= max_displacement) return {};
  return fail(
      Code::bad_argument,
      fmt::format("setting a view: displacement {} is not between 0 and 2^61", displacement));
}

Status check_filetype(const TypeMap& etype, const TypeMap& filetype, const AccessMode& mode) {
  if (etype.size() == 0) return fail(Code::bad_type, "setting a view: the etype has no bytes");
  if (filetype.size() % etype.size() != 0) {
    return fail(
        Code::bad_type,
        fmt::format("setting a view: the filetype's size {} is not a multiple of the etype's, {}",
                    filetype.size(), etype.size()));
  }
  if (filetype.pattern.lowest() < 0) {
    return fail(
        Code::bad_type,
        fmt::format("setting a view: the filetype starts at byte {}, before its displacement",
                    filetype.pattern.lowest()));
  }
  if (!filetype.nondecreasing) {
    return fail(
        Code::bad_type,
        "setting a view: the filetype's displacements decrease; order its blocks by displacement");
  }
  if (mode.write && !filetype.pattern.ordered()) {
    return fail(Code::bad_type,
                "setting a view: blocks of the filetype overlap, and the file is open for writing");
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const View>> View::make(const Request& request, const AccessMode& mode) {
  SHIMA_TRY_ASSIGN(auto representation, representation_of(request.datarep));
  SHIMA_TRY(check_displacement(request.displacement));
  SHIMA_TRY_ASSIGN(const auto etype, type_map_in_file(request.etype, representation.get()));
  SHIMA_TRY_ASSIGN(const auto filetype, type_map_in_file(request.filetype, representation.get()));
  SHIMA_TRY(check_filetype(*etype, *filetype, mode));
  return std::shared_ptr<const View>(
      new View(request, std::move(representation), *etype, filetype));
}

View::View(const Request& request, std::shared_ptr<const Representation> representation,
           const TypeMap& etype, std::shared_ptr<const TypeMap> map)
    : displacement_(request.displacement),
      etype_(keep_type(request.etype)),
      filetype_(keep_type(request.filetype)),
      datarep_(request.datarep),
      representation_(std::move(representation)),
      etype_size_(as_signed(etype.size())),
      etype_extent_(etype.extent),
      map_(std::move(map)) {}

View::~View() {
  release_type(etype_);
  release_type(filetype_);
}

Result<Slice> View::slice(ViewOffset first, std::uint64_t len) const {
  if (len == 0) return Slice{};
  const std::uint64_t first_byte = as_unsigned(first.value);
  const std::uint64_t all = map_->tiled.len_bytes();
  if (first_byte > all || len > all - first_byte) {
    return fail(Code::bad_argument,
                fmt::format("{} bytes at byte {} are beyond the end of the view", len, first_byte));
  }
  if (!map_->tiled.ordered()) return exact_slice(first_byte, len);
  return Slice{
      .pattern = map_->tiled, .base = displacement_, .first_byte = first_byte, .len_bytes = len};
}

std::optional<FileOffset> View::contiguous(ViewOffset first, std::uint64_t len) const {
  const std::uint64_t all = map_->tiled.len_bytes();
  const std::uint64_t first_byte = as_unsigned(first.value);
  if (!is_dense() || first_byte > all || len > all - first_byte) return std::nullopt;
  return FileOffset{displacement_ + first.value};
}

// If tiles interleave or overlap, the bounds of the unbounded pattern tell nothing about those of a
// request, so only the tiles that the request touches are repeated.
Slice View::exact_slice(std::uint64_t first, std::uint64_t len) const {
  const std::uint64_t tile = first / map_->size();
  const std::uint64_t tiles = (first + len - 1) / map_->size() - tile + 1;
  return {.pattern = Pattern::strided(tiles, map_->extent, map_->pattern),
          .base = displacement_ + as_signed(tile) * map_->extent,
          .first_byte = first - tile * map_->size(),
          .len_bytes = len};
}

std::unexpected<Error> no_offset_of_a_view(MPI_Offset etypes) {
  return fail(Code::bad_argument, fmt::format("offset {} is not an offset of a file view", etypes));
}

Result<ViewOffset> View::etype_start(MPI_Offset etypes) const {
  return etype_start_of(etypes, etype_size_);
}

Result<FileOffset> View::place_of(ViewOffset byte) const {
  if (map_->tiled.empty()) return FileOffset{displacement_};
  SHIMA_TRY_ASSIGN(Slice one, slice(byte, 1));
  return FileOffset{Cursor(std::move(one)).strip().offset};
}

MPI_Offset View::etypes_before(FileOffset end) const {
  if (map_->tiled.empty() || end.value <= displacement_) return 0;
  const std::int64_t etype = etype_size_;
  if (!map_->tiled.ordered()) {
    // Interleaved tiles: count those that start before the end.
    const std::int64_t distance = end.value - displacement_ - map_->pattern.lowest();
    if (map_->extent <= 0 || distance <= 0) return 0;
    return (distance + map_->extent - 1) / map_->extent * (as_signed(map_->size()) / etype);
  }
  Cursor cursor({.pattern = map_->tiled,
                 .base = displacement_,
                 .first_byte = 0,
                 .len_bytes = map_->tiled.len_bytes()});
  cursor.seek_offset(end.value);
  return (as_signed(cursor.byte()) + etype - 1) / etype;
}

}  // namespace shima
