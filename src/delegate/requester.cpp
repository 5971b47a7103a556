#include "delegate/requester.h"

#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/copy/distance.h"

namespace shima::delegate {
namespace {

constexpr std::chrono::milliseconds look_again{1};

bool is_open(const Desk& desk) { return desk.magic.load(std::memory_order_acquire) == desk_magic; }

std::unexpected<Error> has_left() {
  return fail(Code::peer_lost, "the delegatee has closed its desk or exited");
}

// Takes a free seat for the holder; null if there is none.
Seat* take_seat(Desk& desk, std::uint64_t holder) {
  for (Seat& seat : desk.seats()) {
    std::uint64_t none = 0;
    if (seat.holder.load(std::memory_order_relaxed) == 0 &&
        seat.holder.compare_exchange_strong(none, holder, std::memory_order_acq_rel)) {
      desk.tell_of_change();
      return &seat;
    }
  }
  return nullptr;
}

}  // namespace

Result<std::unique_ptr<Requester>> Requester::join(std::span<std::byte> memory,
                                                   RequesterOptions options,
                                                   std::optional<std::chrono::milliseconds> limit) {
  if (memory.size() < sizeof(Desk))
    return fail(Code::bad_argument, "joining a desk: the memory is smaller than any desk");
  Desk& desk = *reinterpret_cast<Desk*>(memory.data());
  options.inline_bytes = std::min(options.inline_bytes, most_inline);
  const auto begun = Clock::now();
  const auto is_late = [&] { return limit && Clock::now() - begun >= *limit; };
  for (; !is_open(desk); std::this_thread::sleep_for(look_again))
    if (is_late())
      return fail(Code::timed_out, "joining a desk: no delegatee has opened it in time");
  if (memory.size() < Desk::len_bytes(desk.seat_count))
    return fail(Code::bad_argument, "joining a desk: the desk is larger than its memory");
  SHIMA_TRY_ASSIGN(ProcessHandle life, ProcessHandle::of(desk.process));
  const std::uint64_t holder = Holder{::getpid(), options.task}.word();
  for (;; std::this_thread::sleep_for(look_again)) {
    if (desk.closed.load() != 0 || life.has_ended()) return has_left();
    if (Seat* const seat = take_seat(desk, holder))
      return std::unique_ptr<Requester>(new Requester(desk, *seat, options, std::move(life)));
    if (is_late())
      return fail(Code::timed_out,
                  "all " + std::to_string(desk.seat_count) + " seats of a delegatee are taken");
  }
}

Requester::Requester(Desk& desk, Seat& seat, RequesterOptions options, ProcessHandle life)
    : desk_(desk), seat_(seat), options_(std::move(options)), delegatee_(std::move(life)) {}

Requester::~Requester() {
  for (Ticket ticket = next_ - std::min<Ticket>(next_, ring_depth); ticket < next_; ++ticket) {
    [[maybe_unused]] const auto answer = wait(ticket);  // the caller does not need it
  }
  seat_.holder.fetch_or(Holder::leaving, std::memory_order_seq_cst);
  desk_.tell_of_change();
}

std::size_t Requester::most_at_once(std::span<const std::byte> payload) const {
  if (options_.reachable.contains(payload)) return payload.size();
  return std::min(payload.size(), options_.bounce.take ? most_bounced : most_inline);
}

bool Requester::travels_inline(std::span<const std::byte> payload) const {
  return payload.size() <= options_.inline_bytes ||
         (payload.size() <= most_inline && !options_.reachable.contains(payload));
}

// The destination of a payload that is neither reachable nor small enough for its slot.
Result<std::byte*> Requester::bounce_of(std::span<const std::byte> payload) const {
  if (options_.bounce.take) return options_.bounce.take(payload.size());
  return fail(Code::bad_argument, "the delegatee cannot access the memory of a request");
}

Result<Ticket> Requester::start(const Request& request) {
  if (lost_) return std::unexpected(*lost_);
  if (request.operation <= 0 || request.operation >= operation_count)
    return fail(Code::bad_argument, "there is no operation " + std::to_string(request.operation));
  Pending& pending = pending_[next_ % ring_depth];
  if (pending.under_way)
    return fail(Code::bad_count, "too many requests are pending; wait for the oldest one first");
  const bool is_inline = travels_inline(request.payload);
  std::byte* bounce = nullptr;
  if (!is_inline && !reaches(request.payload)) {
    SHIMA_TRY_ASSIGN(bounce, bounce_of(request.payload));
  }
  Slot& slot = slot_of(next_);
  std::byte* const copy = is_inline ? slot.payload.data() : bounce;
  pending = {.copy_to = copy != nullptr && request.direction != PayloadDirection::to_delegatee
                            ? request.payload
                            : std::span<std::byte>{},
             .bounce = bounce,
             .ticket = next_,
             .under_way = true,
             .by_value = request.direction == PayloadDirection::from_delegatee};
  slot.is_inline = is_inline;
  fill(slot, request, copy);
  desk_.event.wake();
  return next_++;
}

// `copy`: where the payload is copied to; null: it stays in place.
void Requester::fill(Slot& slot, const Request& request, std::byte* copy) {
  slot.operation = static_cast<std::uint8_t>(request.operation);
  slot.arguments = request.arguments;
  slot.len_bytes = request.payload.size();
  slot.address = reinterpret_cast<std::uint64_t>(copy != nullptr ? copy : request.payload.data());
  if (copy != nullptr && request.direction != PayloadDirection::from_delegatee &&
      !request.payload.empty())
    copy_bytes(copy, request.payload.data(), request.payload.size());
  slot.state.store(SlotState::posted, std::memory_order_seq_cst);
}

void Requester::give_back(Pending& pending) const {
  if (pending.bounce != nullptr) options_.bounce.give(pending.bounce);
  pending.bounce = nullptr;
  pending.under_way = false;
}

Status Requester::check() const {
  if (delegatee_.has_ended()) return fail(Code::peer_lost, "the delegatee's process has ended");
  if ((seat_.holder.load() & Holder::refused) != 0)
    return fail(Code::access_denied, "the delegatee refuses this requester");
  return {};
}

Result<Requester::Pending*> Requester::pending_of(Ticket ticket) {
  Pending& pending = pending_[ticket % ring_depth];
  if (pending.under_way && pending.ticket == ticket) return &pending;
  return fail(Code::bad_argument, "this request was never started, or has been waited for");
}

Result<bool> Requester::is_done(Ticket ticket) {
  SHIMA_TRY(pending_of(ticket));
  if (lost_ || slot_of(ticket).state.load(std::memory_order_acquire) == SlotState::done)
    return true;
  if (desk_.closed.load() != 0)
    lost_ = has_left().error();
  else if (const Status there = check(); !there)
    lost_ = there.error();
  return lost_.has_value();
}

Result<std::int64_t> Requester::wait(Ticket ticket) {
  SHIMA_TRY_ASSIGN(Pending* const pending, pending_of(ticket));
  Slot& slot = slot_of(ticket);
  const auto is_answered = [&] { return slot.state.load() == SlotState::done; };
  if (!lost_) {
    const auto ready = [&] { return is_answered() || desk_.closed.load() != 0; };
    const auto came = await(seat_.event, {options_.spin_us, {}}, ready, [&] { return check(); });
    if (!came) lost_ = came.error();
  }
  // The delegatee may have answered just before it exited.
  if (is_answered()) return collect(slot, *pending);
  if (!lost_) lost_ = has_left().error();
  give_back(*pending);
  return std::unexpected(*lost_);
}

Result<std::int64_t> Requester::collect(Slot& slot, Pending& pending) {
  Result<std::int64_t> answer = slot.value;
  if (slot.code != Code::ok)
    answer =
        fail(slot.code, "delegated operation " + std::to_string(slot.operation), slot.sys_errno);
  std::size_t bytes = pending.copy_to.size();
  if (pending.by_value)
    bytes = std::min(bytes, static_cast<std::size_t>(std::max<std::int64_t>(slot.value, 0)));
  const std::byte* const copy = pending.bounce != nullptr ? pending.bounce : slot.payload.data();
  if (answer && bytes > 0) copy_bytes(pending.copy_to.data(), copy, bytes);
  give_back(pending);
  slot.state.store(SlotState::free, std::memory_order_release);
  return answer;
}

Result<std::int64_t> Requester::call(const Request& request) {
  SHIMA_TRY_ASSIGN(const Ticket ticket, start(request));
  return wait(ticket);
}

}  // namespace shima::delegate
