// The calls of dsm.h.
#include "shima/dsm.h"

#include <fmt/format.h>

#include "capi/dsm/errors.h"
#include "capi/dsm/handle.h"
#include "observe/board.h"
#include "observe/trace_clock.h"
#include "observe/trace_runs.h"

namespace {

using shima::CallPlace;
using shima::Code;
using shima::count;
using shima::Counted;
using shima::Doing;
using shima::fail;
using shima::is_traced;
using shima::Result;
using shima::ShortCall;
using shima::Status;
using shima::traced_if;
using shima::call::Dsm;
using shima::call::dsm_access_of;
using shima::capi::guarded_dsm;
using shima::dsm::Memory;
using shima::dsm::Protection;

std::unexpected<shima::Error> refuse_child() {
  return fail(Code::bad_handle,
              "this process is a child of the one that has opened the memory (fork); only that one "
              "can use it, and open others");
}

std::unexpected<shima::Error> refuse(const dsm* handle) {
  if (handle == nullptr)
    return fail(Code::bad_argument, "the memory is NULL; use what dsm_open has stored");
  return refuse_child();
}

// Runs the body of a call on a memory.
template <class Body>
auto with_memory(const dsm* handle, Body body) noexcept {
  return guarded_dsm([&]() -> decltype(body(*handle->memory)) {
    if (handle == nullptr || shima::capi::is_forked_child()) [[unlikely]]
      return refuse(handle);
    return body(*handle->memory);
  });
}

std::unexpected<shima::Error> refuse_null(const char* name) {
  return fail(Code::bad_argument, fmt::format("{} is NULL", name));
}

Status check_pointer(const void* pointer, const char* name) {
  if (pointer == nullptr) return refuse_null(name);
  return {};
}

Result<Protection> protection_of(int number) {
  if (number >= DSM_READ_WRITE && number <= DSM_NONE) return static_cast<Protection>(number);
  return fail(
      Code::bad_argument,
      fmt::format("protection {} is none of DSM_READ_WRITE, DSM_READ_ONLY and DSM_NONE", number));
}

Status check_open(const dsm_options& options, dsm* const* memory) {
  SHIMA_TRY(check_pointer(static_cast<const void*>(memory), "memory"));
  if (options.way >= DSM_WAY_BEST && options.way <= DSM_WAY_UDP) return {};
  return fail(Code::bad_argument, fmt::format("way {} is no dsm_way; they are 0 to {}", options.way,
                                              static_cast<int>(DSM_WAY_UDP)));
}

// Whether the arguments can be those of an access that makes no error, which is not traced.
inline bool is_usable(const dsm* memory, const void* data) {
  return memory != nullptr && data != nullptr && !shima::capi::has_detour();
}

// What a trace has of an access. Within the host, a small one is a copy of nanoseconds.
auto access(const Memory& memory, const CallPlace& place, int task, uint64_t offset, size_t len) {
  return [=, &memory] {
    constexpr std::size_t large_bytes = std::size_t{64} << 10U;
    const bool is_known = task >= 0 && task < memory.tasks();
    return ShortCall{.place = place,
                     .task = is_known ? task : -1,
                     .bytes = len,
                     .offset = static_cast<std::int64_t>(offset),
                     .is_tiny = is_known && len < large_bytes && memory.is_direct(task)};
  };
}

auto waiting(shima::CallCode code, const void* site) {
  return [=] { return ShortCall{.place = {code, site}}; };
}

// Six parameters fit into registers, so that the usual case needs no room on the stack.
template <bool complete>
[[gnu::noinline]] int store(dsm* memory, int task, uint64_t offset, std::span<const std::byte> data,
                            const void* site) noexcept {
  return with_memory(memory, [&](Memory& it) -> Status {
    if (!data.empty() && data.data() == nullptr) return refuse_null("data");
    count(Counted::dsm_write, data.size());
    const Doing now(shima::call::dsm_access);
    const CallPlace place{dsm_access_of(complete ? Dsm::write_b : Dsm::write), site};
    return traced_if(is_traced(), access(it, place, task, offset, data.size()),
                     [&] { return it.write(task, offset, data, complete); });
  });
}

[[gnu::noinline]] int load(dsm* memory, int task, uint64_t offset, std::span<std::byte> data,
                           const void* site) noexcept {
  return with_memory(memory, [&](Memory& it) -> Status {
    if (!data.empty() && data.data() == nullptr) return refuse_null("data");
    count(Counted::dsm_read, data.size());
    const Doing now(shima::call::dsm_access);
    return traced_if(is_traced(),
                     access(it, {dsm_access_of(Dsm::read), site}, task, offset, data.size()),
                     [&] { return it.read(task, offset, data); });
  });
}

// The usual case apart: it needs no room for an error.
template <bool complete>
[[gnu::always_inline]] inline int store_fast(dsm* memory, int task, uint64_t offset,
                                             const void* data, size_t len,
                                             const void* site) noexcept {
  const std::span bytes(static_cast<const std::byte*>(data), len);
  if (is_usable(memory, data) && memory->memory->write_directly(task, offset, bytes, complete))
      [[likely]] {
    count(Counted::dsm_write, len);
    return 0;
  }
  return store<complete>(memory, task, offset, bytes, site);
}

Dsm kind_of(RMW_ops_t operation) {
  switch (operation) {
    case FETCH_AND_ADD:
      return Dsm::fetch_add;
    case FETCH_AND_OR:
      return Dsm::fetch_or;
    case SWAP:
      return Dsm::swap;
    default:
      return Dsm::compare_and_swap;
  }
}

Result<std::uint64_t> update(Memory& memory, int task, uint64_t offset,
                             const shima::dsm::Rmw& request, const void* site) {
  const std::uint64_t len_bytes = request.size_bits / 8;
  count(Counted::dsm_rmw, len_bytes);
  const CallPlace place{dsm_access_of(kind_of(request.operation), len_bytes == 8), site};
  return traced_if(is_traced(), access(memory, place, task, offset, len_bytes),
                   [&] { return memory.rmw(task, offset, request); });
}

// Stores the previous value.
template <class Word>
[[gnu::always_inline]] inline int exchange(dsm* memory, int task, uint64_t offset,
                                           RMW_ops_t operation, Word value,
                                           Word* previous) noexcept {
  const void* const site = __builtin_return_address(0);
  return with_memory(memory, [&](Memory& it) -> Status {
    SHIMA_TRY_ASSIGN(const std::uint64_t before,
                     update(it, task, offset, {operation, sizeof(Word) * 8, {value, 0}}, site));
    if (previous != nullptr) *previous = static_cast<Word>(before);
    return {};
  });
}

template <class Word>
[[gnu::always_inline]] inline int compare_and_swap(dsm* memory, int task, uint64_t offset,
                                                   Word expected, Word desired) noexcept {
  const void* const site = __builtin_return_address(0);
  return with_memory(memory, [&](Memory& it) -> Result<int> {
    SHIMA_TRY_ASSIGN(
        const std::uint64_t swapped,
        update(it, task, offset, {COMPARE_AND_SWAP, sizeof(Word) * 8, {expected, desired}}, site));
    return swapped != 0 ? 1 : 0;
  });
}

}  // namespace

int dsm_open(const dsm_options* options, dsm** memory) noexcept {
  const ShortCall call{.place = {shima::call::dsm_open, __builtin_return_address(0)}};
  return guarded_dsm([&]() -> Status {
    if (shima::capi::is_forked_child()) return refuse_child();
    const std::uint64_t begun_ns = shima::trace::now_ns();  // the first one starts the trace
    const dsm_options wanted = options != nullptr ? *options : dsm_options{};
    auto made = shima::capi::open_memory(check_open(wanted, memory), wanted.size, wanted.way);
    if (is_traced()) shima::trace::end(call, begun_ns, !made);
    if (!made) return std::unexpected(made.error());
    *memory = made->release();
    return {};
  });
}

int dsm_close(dsm* memory) noexcept {
  const auto call = waiting(shima::call::dsm_close, __builtin_return_address(0));
  return with_memory(memory, [&](Memory&) -> Status {
    return traced_if(is_traced(), call,
                     [&] { return shima::capi::close_memory(std::unique_ptr<dsm>(memory)); });
  });
}

int dsm_task(const dsm* memory) noexcept {
  return with_memory(memory, [](Memory& it) -> Result<int> { return it.task(); });
}

int dsm_tasks(const dsm* memory) noexcept {
  return with_memory(memory, [](Memory& it) -> Result<int> { return it.tasks(); });
}

int dsm_size(dsm* memory, int task, uint64_t* size) noexcept {
  return with_memory(memory, [&](Memory& it) -> Status {
    SHIMA_TRY(check_pointer(size, "size"));
    SHIMA_TRY_ASSIGN(*size, it.size_of(task));
    return {};
  });
}

void* dsm_address(dsm* memory) noexcept {
  if (memory == nullptr || shima::capi::is_forked_child() ||
      memory->memory->own().size_bytes() == 0)
    return nullptr;
  return memory->memory->own().data();
}

int dsm_read(dsm* memory, int task, uint64_t offset, void* data, size_t len) noexcept {
  const std::span bytes(static_cast<std::byte*>(data), len);
  if (is_usable(memory, data) && memory->memory->read_directly(task, offset, bytes)) [[likely]] {
    count(Counted::dsm_read, len);
    return 0;
  }
  return load(memory, task, offset, bytes, __builtin_return_address(0));
}

int dsm_write(dsm* memory, int task, uint64_t offset, const void* data, size_t len) noexcept {
  return store_fast<false>(memory, task, offset, data, len, __builtin_return_address(0));
}

int dsm_write_b(dsm* memory, int task, uint64_t offset, const void* data, size_t len) noexcept {
  return store_fast<true>(memory, task, offset, data, len, __builtin_return_address(0));
}

int dsm_fence(dsm* memory) noexcept {
  const auto call = waiting(shima::call::dsm_fence, __builtin_return_address(0));
  return with_memory(memory, [&](Memory& it) {
    const Doing now(shima::call::dsm_fence);
    return traced_if(is_traced(), call, [&] { return it.fence(); });
  });
}

int dsm_barrier(dsm* memory) noexcept {
  const auto call = waiting(shima::call::dsm_barrier, __builtin_return_address(0));
  return with_memory(memory, [&](Memory& it) -> Status {
    const Doing now(shima::call::dsm_barrier);
    return traced_if(is_traced(), call, [&]() -> Status {
      Status fenced = it.fence();
      SHIMA_TRY(memory->job->meet());
      return fenced;
    });
  });
}

int dsm_lost(dsm* memory, uint64_t* bytes) noexcept {
  return with_memory(memory, [&](Memory& it) -> Status {
    SHIMA_TRY(check_pointer(bytes, "bytes"));
    *bytes = it.lost_bytes();
    return {};
  });
}

int dsm_fetch_add_32(dsm* memory, int task, uint64_t offset, uint32_t value,
                     uint32_t* previous) noexcept {
  return exchange(memory, task, offset, FETCH_AND_ADD, value, previous);
}

int dsm_fetch_add_64(dsm* memory, int task, uint64_t offset, uint64_t value,
                     uint64_t* previous) noexcept {
  return exchange(memory, task, offset, FETCH_AND_ADD, value, previous);
}

int dsm_fetch_or_32(dsm* memory, int task, uint64_t offset, uint32_t value,
                    uint32_t* previous) noexcept {
  return exchange(memory, task, offset, FETCH_AND_OR, value, previous);
}

int dsm_fetch_or_64(dsm* memory, int task, uint64_t offset, uint64_t value,
                    uint64_t* previous) noexcept {
  return exchange(memory, task, offset, FETCH_AND_OR, value, previous);
}

int dsm_swap_32(dsm* memory, int task, uint64_t offset, uint32_t value,
                uint32_t* previous) noexcept {
  return exchange(memory, task, offset, SWAP, value, previous);
}

int dsm_swap_64(dsm* memory, int task, uint64_t offset, uint64_t value,
                uint64_t* previous) noexcept {
  return exchange(memory, task, offset, SWAP, value, previous);
}

int dsm_compare_and_swap_32(dsm* memory, int task, uint64_t offset, uint32_t expected,
                            uint32_t desired) noexcept {
  return compare_and_swap(memory, task, offset, expected, desired);
}

int dsm_compare_and_swap_64(dsm* memory, int task, uint64_t offset, uint64_t expected,
                            uint64_t desired) noexcept {
  return compare_and_swap(memory, task, offset, expected, desired);
}

int dsm_alloc(dsm* memory, size_t size, int protection, uint64_t* offset) noexcept {
  return with_memory(memory, [&](Memory& it) -> Status {
    SHIMA_TRY(check_pointer(offset, "offset"));
    SHIMA_TRY_ASSIGN(const Protection wanted, protection_of(protection));
    SHIMA_TRY_ASSIGN(*offset, it.allocate(size, wanted));
    return {};
  });
}

int dsm_free(dsm* memory, uint64_t offset) noexcept {
  return with_memory(memory, [&](Memory& it) { return it.release(offset); });
}

int dsm_protect(dsm* memory, uint64_t offset, uint64_t size, int protection) noexcept {
  return with_memory(memory, [&](Memory& it) -> Status {
    SHIMA_TRY_ASSIGN(const Protection wanted, protection_of(protection));
    return it.protect(offset, size, wanted);
  });
}
