// The open files of this process, by handle and by number.
//
// Handles are looked up at every call: a small table without a lock remembers open files by a hash
// of their address, until they are closed. Otherwise readers share the lock, and a file's slot is
// found through its address. Slots are reused, lowest first, because Fortran programs expect small
// integers.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <shared_mutex>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "mpiio/file/open_file.h"

namespace shima {
namespace {

struct Registry {
  std::shared_mutex lock;
  std::vector<MPI_File> slots{MPI_FILE_NULL};  // slot 0 stays MPI_FILE_NULL
  std::unordered_map<MPI_File, int> numbers;
};

// Never destroyed: programs may close files while the process exits.
Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

// Changed only by holders of the registry's lock, so that a closed file is never put back.
std::atomic<MPI_File>& known_slot(MPI_File handle) {
  static constinit std::array<std::atomic<MPI_File>, 16> slots{};
  const auto address = reinterpret_cast<std::uintptr_t>(handle);
  return slots[(address / alignof(OpenFile) ^ address >> 12) % slots.size()];
}

OpenFile* file_behind(MPI_File handle) { return reinterpret_cast<OpenFile*>(handle); }

}  // namespace

MPI_File register_open_file(std::unique_ptr<OpenFile>& file) {
  Registry& all = registry();
  const std::unique_lock hold(all.lock);
  auto slot = std::find(all.slots.begin() + 1, all.slots.end(), MPI_FILE_NULL);
  if (slot == all.slots.end()) slot = all.slots.insert(slot, MPI_FILE_NULL);
  const auto handle = reinterpret_cast<MPI_File>(file.get());
  all.numbers.emplace(handle, static_cast<int>(slot - all.slots.begin()));
  *slot = handle;
  std::ignore = file.release();
  return handle;
}

std::unique_ptr<OpenFile> unregister_open_file(MPI_File handle) {
  Registry& all = registry();
  const std::unique_lock hold(all.lock);
  const auto known = all.numbers.find(handle);
  if (known == all.numbers.end()) return nullptr;
  all.slots[static_cast<std::size_t>(known->second)] = MPI_FILE_NULL;
  all.numbers.erase(known);
  known_slot(handle).store(nullptr);
  return std::unique_ptr<OpenFile>(file_behind(handle));
}

OpenFile* find_open_file(MPI_File handle) {
  std::atomic<MPI_File>& slot = known_slot(handle);
  if (slot.load(std::memory_order_acquire) == handle && handle != nullptr)
    return file_behind(handle);
  Registry& all = registry();
  const std::shared_lock hold(all.lock);
  if (!all.numbers.contains(handle)) return nullptr;
  slot.store(handle, std::memory_order_release);
  return file_behind(handle);
}

int number_of(MPI_File handle) {
  Registry& all = registry();
  const std::shared_lock hold(all.lock);
  const auto known = all.numbers.find(handle);
  return known == all.numbers.end() ? 0 : known->second;
}

MPI_File handle_of(int number) {
  Registry& all = registry();
  const std::shared_lock hold(all.lock);
  const bool known = number > 0 && static_cast<std::size_t>(number) < all.slots.size();
  return known ? all.slots[static_cast<std::size_t>(number)] : MPI_FILE_NULL;
}

std::unexpected<Error> not_open(MPI_File handle) {
  return fail(Code::bad_handle, handle == MPI_FILE_NULL
                                    ? "the file handle is MPI_FILE_NULL"
                                    : fmt::format("{} is not the handle of an open file",
                                                  static_cast<void*>(handle)));
}

}  // namespace shima
