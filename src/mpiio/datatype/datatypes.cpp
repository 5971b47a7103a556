#include "mpiio/datatype/datatypes.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>

#include "base/units.h"
#include "mpiio/datatype/type_contents.h"
#include "mpiio/datatype/type_decode.h"
#include "mpiio/mpi/private_comm.h"

namespace shima {
namespace {

using SharedMap = std::shared_ptr<const TypeMap>;

// One lock for all decoding: it is rare, and two threads may not both set one type's attribute.
std::mutex& decode_lock() {
  static auto* lock = new std::mutex;
  return *lock;
}

// A duplicate type has the same map. MPI calls this, so no exception may leave it; if there is no
// memory for the copy, the duplicate is decoded at its first use.
int copy_map(MPI_Datatype, int, void*, void* from, void* to, int* flag) {
  auto* const copy = new (std::nothrow) SharedMap(*static_cast<SharedMap*>(from));
  if (copy != nullptr) *static_cast<void**>(to) = copy;
  *flag = copy != nullptr ? 1 : 0;
  return MPI_SUCCESS;
}

int delete_map(MPI_Datatype, int, void* value, void*) {
  delete static_cast<SharedMap*>(value);
  return MPI_SUCCESS;
}

int map_keyval() {
  static const int keyval = [] {
    int made = MPI_KEYVAL_INVALID;
    PMPI_Type_create_keyval(copy_map, delete_map, &made, nullptr);
    return made;
  }();
  return keyval;
}

SharedMap attached_map(MPI_Datatype type) {
  void* value = nullptr;
  int found = 0;
  PMPI_Type_get_attr(type, map_keyval(), static_cast<void*>(&value), &found);
  return found != 0 ? *static_cast<SharedMap*>(value) : nullptr;
}

// Packing zero items is a portable call that only committed types pass.
bool is_committed(MPI_Datatype type) {
  std::byte nothing{};
  int position = 0;
  return PMPI_Pack(&nothing, 0, type, &nothing, 0, &position, private_comm()) == MPI_SUCCESS;
}

Result<SharedMap> finished(Result<TypeMap> decoded) {
  SHIMA_TRY_ASSIGN(TypeMap map, std::move(decoded));
  map.tiled = Pattern::tiled(map.pattern, map.extent);
  if (map.tiled.depth() > Pattern::max_depth)
    return fail(Code::bad_type, "the datatype is nested too deeply: merge some of its levels");
  return std::make_shared<const TypeMap>(std::move(map));
}

// Predefined types exist as long as MPI, so their maps and patterns are never freed or counted.
struct Predefined {
  MPI_Datatype type;
  SharedMap owner;
  TypeMap uncounted;
};

Result<const Predefined*> make_predefined(MPI_Datatype type) {
  static auto* const lock = new std::mutex;
  static auto* const all = new std::map<MPI_Datatype, Predefined>;
  const std::lock_guard hold(*lock);
  if (const auto known = all->find(type); known != all->end()) return &known->second;
  SHIMA_TRY_ASSIGN(const SharedMap map, finished(decode_type(type)));
  Predefined made{type, map, *map};
  made.uncounted.pattern = map->pattern.uncounted();
  made.uncounted.tiled = map->tiled.uncounted();
  return &all->emplace(type, std::move(made)).first->second;
}

// The predefined types used last, found without locks or MPI calls.
std::atomic<const Predefined*>& recent_slot(MPI_Datatype type) {
  static constinit std::array<std::atomic<const Predefined*>, 16> slots{};
  const std::size_t hash = std::hash<MPI_Datatype>{}(type);
  return slots[(hash ^ (hash >> 7)) % slots.size()];
}

SharedMap lend(const Predefined& known) {
  return {std::shared_ptr<const void>{}, &known.uncounted};
}

Result<SharedMap> derived_map(MPI_Datatype type) {
  const std::lock_guard hold(decode_lock());
  if (SharedMap map = attached_map(type)) return map;
  if (!is_committed(type)) {
    return fail(Code::bad_type, "the datatype is not committed: call MPI_Type_commit first");
  }
  SHIMA_TRY_ASSIGN(SharedMap map, finished(decode_type(type)));
  PMPI_Type_set_attr(type, map_keyval(), new SharedMap(map));
  return map;
}

}  // namespace

Result<SharedMap> type_map_of(MPI_Datatype type) {
  if (type == MPI_DATATYPE_NULL) return fail(Code::bad_type, "the datatype is MPI_DATATYPE_NULL");
  std::atomic<const Predefined*>& recent = recent_slot(type);
  const Predefined* known = recent.load(std::memory_order_acquire);
  if (known != nullptr && known->type == type) return lend(*known);
  if (SharedMap map = attached_map(type)) return map;
  if (!is_predefined(type)) return derived_map(type);
  SHIMA_TRY_ASSIGN(known, make_predefined(type));
  recent.store(known, std::memory_order_release);
  return lend(*known);
}

const TypeMap* recent_type_map(MPI_Datatype type) {
  const Predefined* const known = recent_slot(type).load(std::memory_order_acquire);
  return known != nullptr && known->type == type ? &known->uncounted : nullptr;
}

Result<SharedMap> type_map_in_file(MPI_Datatype type, const Representation* representation) {
  SHIMA_TRY_ASSIGN(SharedMap in_memory, type_map_of(type));
  if (representation == nullptr) return in_memory;
  return finished(decode_type_in_file(type, *representation));
}

Result<Slice> memory_slice(const TypeMap& map, const void* buffer, std::int64_t count) {
  std::uint64_t len = 0;
  if (__builtin_mul_overflow(as_unsigned(count), map.size(), &len) ||
      (len > 0 && len > map.tiled.len_bytes())) {
    return fail(Code::bad_count,
                fmt::format("count {} of a datatype of {} bytes is more than memory holds", count,
                            map.size()));
  }
  return Slice{.pattern = count == 1 ? map.pattern : map.tiled,
               .base = static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(buffer)),
               .first_byte = 0,
               .len_bytes = len};
}

MPI_Datatype keep_type(MPI_Datatype type) {
  if (is_predefined(type)) return type;
  MPI_Datatype kept = MPI_DATATYPE_NULL;
  PMPI_Type_dup(type, &kept);
  return kept;
}

void release_type(MPI_Datatype type) {
  if (type != MPI_DATATYPE_NULL && !is_predefined(type)) PMPI_Type_free(&type);
}

}  // namespace shima
