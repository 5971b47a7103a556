#include "delegate/in_space.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

namespace shima::delegate {
namespace {

using pvas::Membership;

Result<Membership> own_membership() {
  const auto self = Membership::own();
  if (!self) return fail(Code::bad_handle, "this process is not a task of a space");
  return *self;
}

Result<std::span<std::byte>> map_desk(std::size_t len_bytes) {
  void* const at = ::mmap(nullptr, len_bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return fail_errno(errno, "allocating a desk");
  return std::span(static_cast<std::byte*>(at), len_bytes);
}

Result<std::span<std::byte>> share_desk(const Membership& self, std::size_t len_bytes) {
  SHIMA_TRY_ASSIGN(pvas::Commons* const commons, self.commons());
  SHIMA_TRY_ASSIGN(void* const at, pvas::heap_of(*commons).take(len_bytes));
  std::memset(at, 0, len_bytes);
  return std::span(static_cast<std::byte*>(at), len_bytes);
}

// Frees memory that no other task has seen.
void drop_desk(const Membership& self, std::span<std::byte> memory, bool is_shared) {
  if (!is_shared) {
    ::munmap(memory.data(), memory.size());
    return;
  }
  [[maybe_unused]] const Status given = pvas::heap_of(**self.commons()).give(memory.data());
}

// Another task may have reused the number; the process ID tells. A task of another space cannot be
// held.
Status hold_requester(const Membership& self, const Holder& who, bool is_for_group) {
  if (who.task < 0 && is_for_group) return {};
  if (who.task < 0) return fail(Code::access_denied, "the requester is not a task of the space");
  SHIMA_TRY(self.hold(who.task));
  const auto process = self.process(who.task);
  if (process && *process == who.pid) return {};
  SHIMA_TRY(self.release(who.task));
  return fail(Code::peer_lost, "the requester has ended");
}

// A requester that has died needs no release.
void release(const Membership& self, int task) {
  if (task < 0) return;
  [[maybe_unused]] const Status released = self.release(task);
}

Bounce bounce_in(pvas::Commons& commons) {
  return {.take = [&commons](std::size_t size) -> Result<std::byte*> {
            SHIMA_TRY_ASSIGN(void* const at, pvas::heap_of(commons).take(size));
            return static_cast<std::byte*>(at);
          },
          .give =
              [&commons](std::byte* memory) {
                [[maybe_unused]] const Status given = pvas::heap_of(commons).give(memory);
              }};
}

// What a requester can pass by address depends on whether the delegatee sees all of its memory.
Status adapt(RequesterOptions& options, const Membership& self, bool is_own_space) {
  options.reachable = reachable_everywhere;
  options.task = self.task();
  if (is_own_space) return {};
  SHIMA_TRY_ASSIGN(pvas::Commons* const commons, self.commons());
  options.reachable = {pvas::commons_data_begin,
                       pvas::commons_data_begin + pvas::commons_data_bytes};
  options.task = -1;
  options.bounce = bounce_in(*commons);
  return {};
}

// The desk's task may have ended since the lookup: then its name is removed, or belongs to another
// task.
Status must_still_be(const Membership& self, const std::string& name, const pvas::Imported& found) {
  const auto again = self.find(name, std::chrono::milliseconds{0});
  if (again && again->owner == found.owner && again->memory.begin == found.memory.begin) return {};
  return fail(Code::peer_lost, "the delegatee " + name + " has ended");
}

}  // namespace

Result<std::unique_ptr<NamedDesk>> NamedDesk::open(const std::string& name, DeskOptions options) {
  SHIMA_TRY_ASSIGN(const Membership self, own_membership());
  if (options.seats == 0 || options.seats > most_seats)
    return fail(Code::bad_argument, "a desk has 1 to " + std::to_string(most_seats) + " seats");
  const std::size_t len_bytes = Delegatee::memory_needed(options.seats);
  SHIMA_TRY_ASSIGN(const auto memory,
                   options.is_for_group ? share_desk(self, len_bytes) : map_desk(len_bytes));
  std::unique_ptr<NamedDesk> desk(new NamedDesk(self, name));
  const auto admit = [self, for_group = options.is_for_group](const Holder& who) {
    return hold_requester(self, who, for_group);
  };
  SHIMA_TRY_ASSIGN(
      desk->delegatee_,
      Delegatee::open(memory, {.seats = options.seats,
                               .spin_us = options.spin_us,
                               .admit = admit,
                               .dismiss = [self](const Holder& who) { release(self, who.task); }}));
  const auto shown =
      self.show(name, {reinterpret_cast<std::uint64_t>(memory.data()), memory.size()});
  if (!shown) {
    desk->name_.clear();
    desk->delegatee_.reset();
    drop_desk(self, memory, options.is_for_group);
    return std::unexpected(shown.error());
  }
  return desk;
}

NamedDesk::~NamedDesk() {
  if (name_.empty()) return;
  [[maybe_unused]] const Status hidden = self_.hide(name_);
}

Result<std::unique_ptr<NamedSeat>> NamedSeat::take(const std::string& name,
                                                   RequesterOptions options,
                                                   std::optional<std::chrono::milliseconds> limit) {
  SHIMA_TRY_ASSIGN(const Membership self, own_membership());
  const auto begun = Clock::now();
  const auto left = [&]() -> std::optional<std::chrono::milliseconds> {
    if (!limit) return {};
    const auto used = std::chrono::floor<std::chrono::milliseconds>(Clock::now() - begun);
    return std::max(std::chrono::milliseconds{0}, *limit - used);
  };
  SHIMA_TRY_ASSIGN(const auto found, self.find(name, left()));
  if (found.owner) SHIMA_TRY(self.hold(*found.owner));
  std::unique_ptr<NamedSeat> seat(new NamedSeat(self, found.owner));
  SHIMA_TRY(must_still_be(self, name, found));
  SHIMA_TRY(adapt(options, self, found.owner.has_value()));
  const std::span memory(reinterpret_cast<std::byte*>(found.memory.begin), found.memory.size);
  SHIMA_TRY_ASSIGN(seat->requester_, Requester::join(memory, std::move(options), left()));
  // Without a hold, the watched process could be one that reuses a dead one's ID.
  if (!found.owner) SHIMA_TRY(must_still_be(self, name, found));
  return seat;
}

NamedSeat::~NamedSeat() {
  requester_.reset();  // before the desk's hold is released
  if (owner_) release(self_, *owner_);
}

}  // namespace shima::delegate
