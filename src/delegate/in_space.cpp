#include "delegate/in_space.h"

#include <sys/mman.h>

#include <cerrno>

namespace shima::delegate {
namespace {

using pvas::Membership;

Result<Membership> own_membership() {
  const auto self = Membership::own();
  if (!self) return fail(Code::bad_handle, "this process is not a task of a space");
  return *self;
}

Result<std::span<std::byte>> map_desk(std::uint32_t seats) {
  const std::size_t len_bytes = Delegatee::memory_needed(seats);
  void* const at = ::mmap(nullptr, len_bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return fail_errno(errno, "making a desk");
  return std::span(static_cast<std::byte*>(at), len_bytes);
}

// The number may be another task's by now, which the process tells.
Status hold_requester(const Membership& self, const Holder& who) {
  if (who.task < 0) return fail(Code::access_denied, "a requester that is no task of the space");
  SHIMA_TRY(self.hold(who.task));
  const auto process = self.process(who.task);
  if (process && *process == who.pid) return {};
  SHIMA_TRY(self.release(who.task));
  return fail(Code::peer_lost, "a requester has ended");
}

// A requester that dies before it has given back what it holds gives it back by that.
void release(const Membership& self, int task) {
  [[maybe_unused]] const Status released = self.release(task);
}

}  // namespace

Result<std::unique_ptr<NamedDesk>> NamedDesk::open(const std::string& name, std::uint32_t seats,
                                                   std::uint32_t spin_us) {
  SHIMA_TRY_ASSIGN(const Membership self, own_membership());
  if (seats == 0 || seats > most_seats)
    return fail(Code::bad_argument, "a desk has 1 to " + std::to_string(most_seats) + " seats");
  SHIMA_TRY_ASSIGN(const auto memory, map_desk(seats));
  std::unique_ptr<NamedDesk> desk(new NamedDesk(self, name));
  SHIMA_TRY_ASSIGN(
      desk->delegatee_,
      Delegatee::open(memory,
                      {.seats = seats,
                       .spin_us = spin_us,
                       .admit = [self](const Holder& who) { return hold_requester(self, who); },
                       .dismiss = [self](const Holder& who) { release(self, who.task); }}));
  const auto shown =
      self.show(name, {reinterpret_cast<std::uint64_t>(memory.data()), memory.size()});
  if (!shown) {
    desk->name_.clear();
    desk->delegatee_.reset();
    ::munmap(memory.data(), memory.size());  // which nobody has seen
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
  if (!found.owner)
    return fail(Code::access_denied, "the delegatee " + name + " is a task of another space");
  SHIMA_TRY(self.hold(*found.owner));
  std::unique_ptr<NamedSeat> seat(new NamedSeat(self, *found.owner));
  // The desk's task may have ended before it was held: then its name is gone, or another's.
  const auto again = self.find(name, std::chrono::milliseconds{0});
  if (!again || again->owner != found.owner || again->memory.begin != found.memory.begin)
    return fail(Code::peer_lost, "the delegatee " + name + " has ended");
  options.reachable = reachable_everywhere;
  options.task = self.task();
  const std::span memory(reinterpret_cast<std::byte*>(found.memory.begin), found.memory.size);
  SHIMA_TRY_ASSIGN(seat->requester_, Requester::join(memory, options, left()));
  return seat;
}

NamedSeat::~NamedSeat() {
  requester_.reset();  // while the desk is held
  release(self_, owner_);
}

}  // namespace shima::delegate
