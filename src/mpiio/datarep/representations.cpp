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

// The cursors on both sides of a copy between a buffer and its packed form.
struct Walks {
  Cursor buffer;
  Cursor bytes;
};

Result<Walks> walks_of(const Buffer& buffer) {
  SHIMA_TRY_ASSIGN(const auto map, type_map_of(buffer.type));
  SHIMA_TRY_ASSIGN(Slice memory, memory_slice(*map, buffer.address, buffer.count));
  const std::uint64_t len = memory.len_bytes;
  return Walks{Cursor(std::move(memory)),
               Cursor({.pattern = Pattern::contiguous(len), .len_bytes = len})};
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

Result<std::vector<std::byte>> packed(const Buffer& buffer) {
  SHIMA_TRY_ASSIGN(Walks walks, walks_of(buffer));
  std::vector<std::byte> bytes(walks.bytes.bytes_left());
  copy_between(reinterpret_cast<std::uintptr_t>(bytes.data()), walks.bytes, 0, walks.buffer);
  return bytes;
}

Status unpack(std::span<const std::byte> bytes, const Buffer& buffer) {
  SHIMA_TRY_ASSIGN(Walks walks, walks_of(buffer));
  copy_between(0, walks.buffer, reinterpret_cast<std::uintptr_t>(bytes.data()), walks.bytes);
  return {};
}

}  // namespace shima
