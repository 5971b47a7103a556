// The calls for tasks.
#include "capi/pvas/errors.h"
#include "pvas/task/membership.h"
#include "shima/pvas.h"

namespace {

using shima::Code;
using shima::fail;
using shima::Result;
using shima::Status;
using shima::capi::guarded_pvas;
using shima::pvas::Membership;

Result<Membership> own() {
  const auto membership = Membership::own();
  if (!membership) return fail(Code::bad_handle, "this process is not a task of a space");
  return *membership;
}

Status judge_room(const int* numbers, int room) {
  if (room < 0 || (room > 0 && numbers == nullptr))
    return fail(Code::bad_argument, "the array is NULL, or its room is negative");
  return {};
}

// Stores as many numbers as there is room for; returns how many exist.
int give_numbers(const std::vector<int>& there, int* numbers, int room) {
  for (std::size_t i = 0; i < there.size() && i < static_cast<std::size_t>(room); ++i)
    numbers[i] = there[i];
  return static_cast<int>(there.size());
}

std::uint64_t number(const void* address) { return reinterpret_cast<std::uint64_t>(address); }

}  // namespace

int pvas_self() noexcept {
  return guarded_pvas([]() -> Result<int> {
    SHIMA_TRY_ASSIGN(const Membership self, own());
    return self.task();
  });
}

int pvas_tasks(int* tasks, int room) noexcept {
  return guarded_pvas([&]() -> Result<int> {
    SHIMA_TRY(judge_room(tasks, room));
    SHIMA_TRY_ASSIGN(const Membership self, own());
    return give_numbers(self.tasks(), tasks, room);
  });
}

int pvas_partition(int task, void** begin, size_t* size) noexcept {
  return guarded_pvas([&]() -> Status {
    SHIMA_TRY_ASSIGN(const Membership self, own());
    SHIMA_TRY_ASSIGN(const auto range, self.partition(task));
    if (begin != nullptr) *begin = reinterpret_cast<void*>(range.begin);
    if (size != nullptr) *size = range.size;
    return {};
  });
}

int pvas_owner(const void* address) noexcept {
  return guarded_pvas([&]() -> Result<int> {
    SHIMA_TRY_ASSIGN(const Membership self, own());
    const auto task = self.owner(number(address));
    if (!task) return fail(Code::peer_lost, "this address is not in the partition of a task");
    return *task;
  });
}

int pvas_export(const char* name, void* address, size_t size) noexcept {
  return guarded_pvas([&]() -> Status {
    if (name == nullptr) return fail(Code::bad_argument, "exporting memory: the name is NULL");
    SHIMA_TRY_ASSIGN(const Membership self, own());
    return self.show(name, {number(address), size});
  });
}

int pvas_withdraw(const char* name) noexcept {
  return guarded_pvas([&]() -> Status {
    if (name == nullptr) return fail(Code::bad_argument, "withdrawing a name: it is NULL");
    SHIMA_TRY_ASSIGN(const Membership self, own());
    return self.hide(name);
  });
}

int pvas_import(const char* name, int timeout_ms, void** address, size_t* size,
                int* owner) noexcept {
  return guarded_pvas([&]() -> Status {
    if (name == nullptr || address == nullptr)
      return fail(Code::bad_argument, "importing memory: the name or a result pointer is NULL");
    SHIMA_TRY_ASSIGN(const Membership self, own());
    std::optional<std::chrono::milliseconds> limit;
    if (timeout_ms >= 0) limit = std::chrono::milliseconds(timeout_ms);
    SHIMA_TRY_ASSIGN(const auto found, self.find(name, limit));
    *address = reinterpret_cast<void*>(found.memory.begin);
    if (size != nullptr) *size = found.memory.size;
    if (owner != nullptr) *owner = found.owner.value_or(-1);
    return {};
  });
}

int pvas_hold(int task) noexcept {
  return guarded_pvas([&]() -> Status {
    SHIMA_TRY_ASSIGN(const Membership self, own());
    return self.hold(task);
  });
}

int pvas_release(int task) noexcept {
  return guarded_pvas([&]() -> Status {
    SHIMA_TRY_ASSIGN(const Membership self, own());
    return self.release(task);
  });
}

int pvas_sharing() noexcept {
  return guarded_pvas([]() -> Result<int> {
    SHIMA_TRY_ASSIGN(const Membership self, own());
    return static_cast<int>(self.space_state().sharing);
  });
}

int pvas_spaces(int* slices, int room) noexcept {
  return guarded_pvas([&]() -> Result<int> {
    SHIMA_TRY(judge_room(slices, room));
    SHIMA_TRY_ASSIGN(const Membership self, own());
    SHIMA_TRY_ASSIGN(const std::vector<int> there, self.spaces());
    return give_numbers(there, slices, room);
  });
}

int pvas_share_alloc(size_t size, void** address) noexcept {
  return guarded_pvas([&]() -> Status {
    if (address == nullptr)
      return fail(Code::bad_argument, "allocating shared memory: the result pointer is NULL");
    SHIMA_TRY_ASSIGN(const Membership self, own());
    SHIMA_TRY_ASSIGN(auto* const commons, self.commons());
    SHIMA_TRY_ASSIGN(*address, heap_of(*commons).take(size));
    return {};
  });
}

int pvas_share_free(void* address) noexcept {
  return guarded_pvas([&]() -> Status {
    SHIMA_TRY_ASSIGN(const Membership self, own());
    SHIMA_TRY_ASSIGN(auto* const commons, self.commons());
    if (address == nullptr) return {};
    return heap_of(*commons).give(address);
  });
}
