#include "mpiio/datarep/representations.h"

#include <fmt/format.h>

#include <map>
#include <mutex>

#include "base/units.h"
#include "mpiio/datarep/external32.h"
#include "mpiio/datatype/datatypes.h"
#include "mpiio/datatype/type_contents.h"
#include "pattern/copy.h"
#include "pattern/cursor.h"

namespace shima {
namespace {

struct Registry {
  std::mutex lock;
  std::map<std::string, std::shared_ptr<const Representation>, std::less<>> known{
      {"native", nullptr}, {"internal", nullptr}, {"external32", external32()}};
};

Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

std::uint64_t size_of(MPI_Datatype type) {
  MPI_Count size = 0;
  PMPI_Type_size_x(type, &size);
  return size > 0 ? static_cast<std::uint64_t>(size) : 0;
}

Result<Signature> signature_of_struct(TypeContents& contents,
                                      const Representation& representation) {
  const std::int64_t count = contents.next_count();
  const std::vector<std::int64_t> lens = contents.next_counts(count);
  std::vector<Signature> parts;
  for (std::size_t i = 0; i < lens.size(); ++i) {
    SHIMA_TRY_ASSIGN(Signature part, signature_of(contents.types()[i], representation));
    parts.push_back(Signature::repeat(std::move(part), as_unsigned(lens[i])));
  }
  return Signature::sequence(std::move(parts));
}

Result<Cursor> cursor_of(const Buffer& buffer) {
  SHIMA_TRY_ASSIGN(const auto map, type_map_of(buffer.type));
  SHIMA_TRY_ASSIGN(Slice memory, memory_slice(*map, buffer.address, buffer.count));
  return Cursor(std::move(memory));
}

// The rest of the packed bytes, which begins at `at`.
Strip rest_from(std::uint64_t at, const Cursor& buffer) {
  return {as_signed(at), buffer.bytes_left(), as_signed(buffer.bytes_left()), 1};
}

}  // namespace

Result<std::shared_ptr<const Representation>> representation_of(std::string_view name) {
  const std::lock_guard hold(registry().lock);
  const auto found = registry().known.find(name);
  if (found != registry().known.end()) return found->second;
  return fail(
      Code::unsupported_datarep,
      fmt::format("data representation \"{}\" is not known; the known ones are native, internal, "
                  "external32 and what MPI_Register_datarep adds",
                  name));
}

Status add_representation(std::string_view name,
                          const std::shared_ptr<const Representation>& representation) {
  if (name.empty() || name.size() >= MPI_MAX_DATAREP_STRING)
    return fail(Code::bad_argument,
                fmt::format("registering a data representation: a name has 1 to {} characters",
                            MPI_MAX_DATAREP_STRING - 1));
  const std::lock_guard hold(registry().lock);
  if (registry().known.try_emplace(std::string(name), representation).second) return {};
  return fail(Code::duplicate_datarep,
              fmt::format("data representation \"{}\" is registered already", name));
}

Result<Signature> signature_of(MPI_Datatype type, const Representation& representation) {
  if (is_predefined(type)) return representation.element(type);
  SHIMA_TRY_ASSIGN(TypeContents contents, TypeContents::of(type));
  if (contents.is_struct()) return signature_of_struct(contents, representation);
  const MPI_Datatype child = contents.types().front();
  const std::uint64_t child_size = size_of(child);
  if (child_size == 0) return Signature{};
  SHIMA_TRY_ASSIGN(Signature part, signature_of(child, representation));
  return Signature::repeat(std::move(part), size_of(type) / child_size);
}

Status pack(const Buffer& buffer, std::span<std::byte> bytes) {
  SHIMA_TRY_ASSIGN(Cursor cursor, cursor_of(buffer));
  while (!cursor.done()) {
    const StripPair pair = match(rest_from(cursor.byte(), cursor), cursor.strip());
    copy_strips(reinterpret_cast<std::uintptr_t>(bytes.data()), 0, pair);
    cursor.advance(pair.len_bytes * pair.count);
  }
  return {};
}

Status unpack(std::span<const std::byte> bytes, const Buffer& buffer) {
  SHIMA_TRY_ASSIGN(Cursor cursor, cursor_of(buffer));
  while (!cursor.done()) {
    const StripPair pair = match(cursor.strip(), rest_from(cursor.byte(), cursor));
    copy_strips(0, reinterpret_cast<std::uintptr_t>(bytes.data()), pair);
    cursor.advance(pair.len_bytes * pair.count);
  }
  return {};
}

}  // namespace shima
