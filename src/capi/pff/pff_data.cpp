// Reading and writing, blocking and nonblocking: sixteen entry points that differ in four options,
// so that each is one line.
//
// A nonblocking request owns its description of both sides; of the caller's memory it uses only the
// data. The executing thread checks the request's fate before it touches the data, so that after a
// successful pff_cancel the data belong to the caller again.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <utility>

#include "capi/pff/errors.h"
#include "capi/pff/handles.h"
#include "capi/pff/where.h"

namespace shima::capi {
namespace {

struct Ask {
  Direction direction;
  bool together;
  pff_file* file;
  pff_where where;
  const void* base;
  const pff_where* memory;  // null: contiguous
};

Status check_mode(const Ask& ask) {
  const AccessMode& mode = ask.file->file->mode();
  const bool writes = ask.direction == Direction::write;
  if (writes ? mode.write : mode.read) return {};
  return fail(Code::bad_access_mode, writes ? "writing a file that was opened without PFF_WRITE"
                                            : "reading a file that was opened without PFF_READ");
}

Result<Slice> memory_of(const Ask& ask, std::uint64_t len_bytes) {
  const pff_where packed = pff_span(0, len_bytes);
  SHIMA_TRY_ASSIGN(Slice slice, slice_of(ask.memory != nullptr ? *ask.memory : packed));
  if (slice.len_bytes != len_bytes)
    return fail(Code::bad_argument, fmt::format("{} bytes of the file, {} bytes of memory",
                                                len_bytes, slice.len_bytes));
  if (len_bytes > 0 && ask.base == nullptr)
    return fail(Code::bad_argument, fmt::format("moving {} bytes: the buffer is NULL", len_bytes));
  slice.base += static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(ask.base));
  return slice;
}

Result<Transfer> transfer_of(const Ask& ask) {
  SHIMA_TRY(check_mode(ask));
  SHIMA_TRY_ASSIGN(Slice file, slice_of(ask.where));
  if (const auto lowest = bounds_of(file).lowest; lowest < 0)
    return fail(Code::bad_argument, fmt::format("offset {} is negative", lowest));
  SHIMA_TRY_ASSIGN(Slice memory, memory_of(ask, file.len_bytes));
  return Transfer{std::move(file), std::move(memory)};
}

// In a collective call an error takes part; for a file of one process it is returned at once.
Result<std::uint64_t> carry_out(Direction direction, bool together, pff_file& file,
                                const Result<Transfer>& transfer) {
  const bool writes = direction == Direction::write;
  if (together && file.in_set)
    return writes ? file.file->write_all(transfer) : file.file->read_all(transfer);
  if (!transfer) return std::unexpected(transfer.error());
  return writes ? file.file->write(*transfer) : file.file->read(*transfer);
}

Status check_handle(const pff_file* file) {
  return file != nullptr ? Status{} : fail(Code::bad_argument, "no file");
}

std::int64_t move(const Ask& ask) noexcept {
  return guarded([&]() -> Result<std::int64_t> {
    SHIMA_TRY(check_handle(ask.file));
    if (ask.together) ask.file->together.drain();
    const auto transfer = caught([&] { return transfer_of(ask); });
    SHIMA_TRY_ASSIGN(const std::uint64_t moved,
                     carry_out(ask.direction, ask.together, *ask.file, transfer));
    return as_signed(moved);
  });
}

using Fate = SharedRequest::Fate;

bool settle(SharedRequest& request, Fate fate) {
  Fate waiting = Fate::waiting;
  return request.fate.compare_exchange_strong(waiting, fate);
}

// The number of requests of this process that have completed; waiters for any request sleep on it.
constinit std::atomic<std::uint32_t> ends{0};

void finish(SharedRequest& request, Outcome64 outcome) {
  request.pending.finish(std::move(outcome));
  ++ends;
  ends.notify_all();
}

std::unexpected<Error> taken_back() { return fail(Code::cancelled, "the request was cancelled"); }

struct Started {
  Task task;
  std::unique_ptr<pff_request> handle;
};

Result<Started> prepare(const Ask& ask, bool takes_part) {
  auto transfer = caught([&] { return transfer_of(ask); });
  if (!transfer && !takes_part) return std::unexpected(transfer.error());
  auto shared = std::make_shared<SharedRequest>(takes_part);
  auto handle = std::make_unique<pff_request>(shared);
  Task task(
      [=, file = ask.file, direction = ask.direction, transfer = std::move(transfer)] {
        const bool wanted = settle(*shared, Fate::begun);
        return carry_out(direction, takes_part, *file,
                         wanted ? transfer : Result<Transfer>(taken_back()));
      },
      [=](Outcome64 outcome) { finish(*shared, std::move(outcome)); });
  return Started{std::move(task), std::move(handle)};
}

// What is queued for a collective request that could not be made here; the others wait for it.
struct PartWithError {
  File* file;
  Code code;
  Direction direction;
  Outcome64 operator()() const {
    const auto error = fail(code, Words());
    return direction == Direction::write ? file->write_all(error) : file->read_all(error);
  }
};

// A collective request with an error is started nevertheless, because the others wait for it.
int start(const Ask& ask, pff_request** request) noexcept {
  return guarded([&]() -> Status {
    SHIMA_TRY(check_handle(ask.file));
    const bool takes_part = ask.together && ask.file->in_set;
    Worker& worker = ask.together ? ask.file->together : ask.file->alone;
    auto started = caught([&]() -> Result<Started> {
      if (request == nullptr)
        return fail(Code::bad_argument, "starting a request: the result pointer is NULL");
      return prepare(ask, takes_part);
    });
    if (!started && takes_part)
      worker.add_reserved(PartWithError{ask.file->file.get(), started.error().code, ask.direction});
    if (!started) return std::unexpected(started.error());
    worker.add(std::move(started->task));
    *request = started->handle.release();
    return {};
  });
}

constexpr auto reading = Direction::read;
constexpr auto writing = Direction::write;

}  // namespace
}  // namespace shima::capi

using namespace shima::capi;  // NOLINT(google-build-using-namespace): this file only defines
                              // entries

int64_t pff_read(pff_file* file, pff_where where, void* buffer) noexcept {
  return move({reading, false, file, where, buffer, nullptr});
}
int64_t pff_write(pff_file* file, pff_where where, const void* buffer) noexcept {
  return move({writing, false, file, where, buffer, nullptr});
}
int64_t pff_read_into(pff_file* file, pff_where where, void* base, pff_where memory) noexcept {
  return move({reading, false, file, where, base, &memory});
}
int64_t pff_write_from(pff_file* file, pff_where where, const void* base,
                       pff_where memory) noexcept {
  return move({writing, false, file, where, base, &memory});
}
int64_t pff_read_all(pff_file* file, pff_where where, void* buffer) noexcept {
  return move({reading, true, file, where, buffer, nullptr});
}
int64_t pff_write_all(pff_file* file, pff_where where, const void* buffer) noexcept {
  return move({writing, true, file, where, buffer, nullptr});
}
int64_t pff_read_all_into(pff_file* file, pff_where where, void* base, pff_where memory) noexcept {
  return move({reading, true, file, where, base, &memory});
}
int64_t pff_write_all_from(pff_file* file, pff_where where, const void* base,
                           pff_where memory) noexcept {
  return move({writing, true, file, where, base, &memory});
}

int pff_start_read(pff_file* file, pff_where where, void* buffer, pff_request** request) noexcept {
  return start({reading, false, file, where, buffer, nullptr}, request);
}
int pff_start_write(pff_file* file, pff_where where, const void* buffer,
                    pff_request** request) noexcept {
  return start({writing, false, file, where, buffer, nullptr}, request);
}
int pff_start_read_into(pff_file* file, pff_where where, void* base, pff_where memory,
                        pff_request** request) noexcept {
  return start({reading, false, file, where, base, &memory}, request);
}
int pff_start_write_from(pff_file* file, pff_where where, const void* base, pff_where memory,
                         pff_request** request) noexcept {
  return start({writing, false, file, where, base, &memory}, request);
}
int pff_start_read_all(pff_file* file, pff_where where, void* buffer,
                       pff_request** request) noexcept {
  return start({reading, true, file, where, buffer, nullptr}, request);
}
int pff_start_write_all(pff_file* file, pff_where where, const void* buffer,
                        pff_request** request) noexcept {
  return start({writing, true, file, where, buffer, nullptr}, request);
}
int pff_start_read_all_into(pff_file* file, pff_where where, void* base, pff_where memory,
                            pff_request** request) noexcept {
  return start({reading, true, file, where, base, &memory}, request);
}
int pff_start_write_all_from(pff_file* file, pff_where where, const void* base, pff_where memory,
                             pff_request** request) noexcept {
  return start({writing, true, file, where, base, &memory}, request);
}

int64_t pff_wait(pff_request* request) noexcept {
  return guarded([&]() -> shima::Result<std::int64_t> {
    if (request == nullptr) return shima::fail(shima::Code::bad_argument, "no request");
    const std::unique_ptr<pff_request> handle(request);
    SHIMA_TRY_ASSIGN(const std::uint64_t moved, handle->shared->pending.wait());
    return shima::as_signed(moved);
  });
}

int pff_wait_any(pff_request* const* requests, int count) noexcept {
  return guarded([&]() -> shima::Result<int> {
    const std::span all(requests,
                        requests == nullptr || count < 0 ? 0U : static_cast<unsigned>(count));
    if (std::ranges::all_of(all, [](const pff_request* each) { return each == nullptr; }))
      return shima::fail(shima::Code::bad_argument, "no request");
    const auto is_over = [](const pff_request* each) {
      return each != nullptr && each->shared->pending.over();
    };
    while (true) {
      const std::uint32_t seen = ends;
      const auto found = std::ranges::find_if(all, is_over);
      if (found != all.end()) return static_cast<int>(found - all.begin());
      ends.wait(seen);
    }
  });
}

int pff_test(pff_request* request) noexcept {
  return guarded([&]() -> shima::Result<int> {
    if (request == nullptr) return shima::fail(shima::Code::bad_argument, "no request");
    return request->shared->pending.over() ? 1 : 0;
  });
}

int pff_cancel(pff_request* request) noexcept {
  return guarded([&]() -> shima::Result<int> {
    if (request == nullptr) return shima::fail(shima::Code::bad_argument, "no request");
    SharedRequest& shared = *request->shared;
    if (!settle(shared, Fate::cancelled)) return 0;
    // Its turn may be far away, and only this caller waits for it.
    if (!shared.takes_part) finish(shared, taken_back());
    return 1;
  });
}
