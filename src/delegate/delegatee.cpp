#include "delegate/delegatee.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace shima::delegate {
namespace {

Slot& slot_at(Seat& seat, std::size_t number) { return seat.slots[number % ring_depth]; }

std::uint32_t bit_of(std::size_t number) { return 1U << (number % ring_depth); }

}  // namespace

Result<std::unique_ptr<Delegatee>> Delegatee::open(std::span<std::byte> memory,
                                                   DelegateeOptions options) {
  if (options.seats == 0 || options.seats > most_seats ||
      memory.size() < memory_needed(options.seats) ||
      reinterpret_cast<std::uintptr_t>(memory.data()) % alignof(Desk) != 0)
    return fail(Code::bad_argument, "opening a desk: it needs 1 to " + std::to_string(most_seats) +
                                        " seats, in memory that is large enough and aligned");
  Desk& desk = *reinterpret_cast<Desk*>(memory.data());
  desk.seat_count = options.seats;
  desk.process = ProcessIdentity::own();
  return std::unique_ptr<Delegatee>(new Delegatee(desk, std::move(options)));
}

Delegatee::Delegatee(Desk& desk, DelegateeOptions options)
    : desk_(desk),
      options_(std::move(options)),
      handlers_(operation_count),
      guests_(options_.seats) {
  desk_.magic.store(desk_magic, std::memory_order_release);
}

Delegatee::~Delegatee() {
  desk_.closed.store(1, std::memory_order_seq_cst);
  for (Seat& seat : desk_.seats()) seat.event.wake();
  if (!options_.dismiss) return;
  for (const Guest& guest : guests_)
    if (guest.holder != 0) options_.dismiss(Holder::of(guest.holder));
}

Status Delegatee::offer(int operation, Handler handler) {
  if (operation < operation_left || operation >= operation_count || !handler)
    return fail(Code::bad_argument, "there is no operation " + std::to_string(operation));
  handlers_[static_cast<std::size_t>(operation)] = std::move(handler);
  return {};
}

Result<std::uint64_t> Delegatee::serve(std::optional<std::chrono::milliseconds> limit) {
  std::uint64_t served = 0;
  while (!stopping_.load(std::memory_order_relaxed) || !stopping_.exchange(false)) {
    if (const std::uint64_t now = sweep(); now > 0) {
      served += now;
      if (timer_.is_due()) look_at_seats(true);
      continue;
    }
    SHIMA_TRY_ASSIGN(const bool came, await_request(limit));
    if (!came) break;
  }
  return served;
}

Result<std::uint64_t> Delegatee::serve_some(std::optional<std::chrono::milliseconds> limit) {
  if (stopping_.exchange(false)) return 0;
  if (const std::uint64_t served = serve_waiting(); served > 0) return served;
  if (limit && limit->count() == 0) return 0;
  SHIMA_TRY_ASSIGN(const bool came, await_request(limit));
  if (!came || stopping_.exchange(false)) return 0;
  return serve_waiting();
}

// Serves at most as many requests as the requesters can have posted by now, so that a requester
// that posts continuously does not keep the caller here.
std::uint64_t Delegatee::serve_waiting() {
  std::uint64_t served = 0;
  for (std::size_t i = 0; i < ring_depth; ++i) {
    const std::uint64_t now = sweep();
    if (now == 0) break;
    served += now;
  }
  if (timer_.is_due()) look_at_seats(true);
  return served;
}

Result<bool> Delegatee::await_request(std::optional<std::chrono::milliseconds> limit) {
  const auto ready = [&] { return something_waits() || stopping_.load(); };
  const auto check = [&]() -> Status {
    look_at_seats(true);
    return {};
  };
  Patience patience{options_.spin_us, {}};
  if (limit) patience.deadline = Clock::now() + *limit;
  return await(desk_.event, patience, ready, check);
}

void Delegatee::stop() {
  stopping_.store(true, std::memory_order_seq_cst);
  desk_.event.wake();
}

bool Delegatee::something_waits() const {
  if (desk_.changes.load(std::memory_order_seq_cst) != seen_changes_) return true;
  return std::ranges::any_of(occupied_, [&](std::uint32_t seat) { return has_request(seat); });
}

// A slot whose answer is deferred still has the state posted.
bool Delegatee::has_request(std::uint32_t seat) const {
  const Guest& guest = guests_[seat];
  if (guest.is_leaving) return false;
  return slot_at(desk_.seats()[seat], guest.next).state.load(std::memory_order_seq_cst) ==
             SlotState::posted &&
         (guest.under_way.load(std::memory_order_seq_cst) & bit_of(guest.next)) == 0;
}

// Takes one request of each requester, so that none starves the others.
std::uint64_t Delegatee::sweep() {
  if (desk_.changes.load(std::memory_order_acquire) != seen_changes_) look_at_seats(false);
  std::uint64_t served = 0;
  for (const std::uint32_t number : occupied_) {
    if (!has_request(number)) continue;
    serve_one(number);
    ++served;
  }
  return served;
}

void Delegatee::serve_one(std::uint32_t seat) {
  Guest& guest = guests_[seat];
  guest.under_way.fetch_or(bit_of(guest.next), std::memory_order_seq_cst);
  Slot& slot = slot_at(desk_.seats()[seat], guest.next++);
  auto* const data =
      slot.is_inline ? slot.payload.data() : reinterpret_cast<std::byte*>(slot.address);
  const ReceivedRequest job{.operation = slot.operation,
                            .arguments = slot.arguments,
                            .payload = {data, slot.len_bytes},
                            .requester = Holder::of(guest.holder),
                            .seat = seat,
                            .slot = &slot};
  const auto answer = handle(job);
  if (!answer)
    finish(job, std::unexpected(answer.error()));
  else if (answer->has_value())
    finish(job, **answer);
}

Result<std::optional<std::int64_t>> Delegatee::handle(const ReceivedRequest& job) const {
  const Handler& handler = handlers_[static_cast<std::size_t>(job.operation)];
  if (!handler)
    return fail(Code::unsupported_operation, "operation " + std::to_string(job.operation));
  return caught([&] { return handler(job); });
}

void Delegatee::finish(const ReceivedRequest& job, const Result<std::int64_t>& answer) {
  Slot& slot = *job.slot;
  Seat& seat = desk_.seats()[job.seat];
  slot.value = answer.value_or(0);
  slot.code = answer ? Code::ok : answer.error().code;
  slot.sys_errno = answer ? 0 : answer.error().sys_errno;
  slot.state.store(SlotState::done, std::memory_order_seq_cst);
  seat.event.wake();
  // From here on the seat may be given to another requester, and the slot's contents become
  // visible.
  const auto number = static_cast<std::size_t>(&slot - seat.slots.data());
  guests_[job.seat].under_way.fetch_and(~bit_of(number), std::memory_order_seq_cst);
  desk_.event.wake();
}

void Delegatee::look_at_seats(bool and_lives) {
  seen_changes_ = desk_.changes.load(std::memory_order_seq_cst);
  occupied_.clear();
  for (std::uint32_t number = 0; number < options_.seats; ++number) {
    const std::uint64_t holder = desk_.seats()[number].holder.load(std::memory_order_acquire);
    Guest& guest = guests_[number];
    if (guest.holder == 0 && holder != 0) admit(number, holder);
    if (guest.holder == 0) continue;
    if ((holder & Holder::leaving) != 0 || (and_lives && guest.life.has_ended())) dismiss(number);
    if (guest.holder != 0) occupied_.push_back(number);
  }
}

// A refused seat stays with its requester until the requester has seen the refusal or died: it may
// be about to post a request.
void Delegatee::admit(std::uint32_t number, std::uint64_t holder) {
  const Holder who = Holder::of(holder);
  auto life = ProcessHandle::of(who.pid);
  const bool is_gone = !life && life.error().code == Code::peer_lost;
  if (is_gone || (holder & Holder::leaving) != 0) {
    tell_of_leaving(number, holder);
    return free_seat(number);
  }
  if ((holder & Holder::refused) != 0) return;
  if (life && (!options_.admit || options_.admit(who))) {
    guests_[number].holder = holder;
    guests_[number].life = std::move(*life);
    guests_[number].next = 0;
    guests_[number].is_leaving = false;
    return;
  }
  desk_.seats()[number].holder.fetch_or(Holder::refused, std::memory_order_seq_cst);
  desk_.seats()[number].event.wake();
}

void Delegatee::dismiss(std::uint32_t number) {
  Guest& guest = guests_[number];
  if (!guest.is_leaving) {
    guest.is_leaving = true;
    tell_of_leaving(number, guest.holder);
  }
  if (guest.under_way.load(std::memory_order_acquire) != 0) return;
  if (options_.dismiss) options_.dismiss(Holder::of(guest.holder));
  guest.holder = 0;
  guest.life = ProcessHandle();
  free_seat(number);
}

void Delegatee::tell_of_leaving(std::uint32_t number, std::uint64_t holder) const {
  const Handler& left = handlers_[operation_left];
  if (!left) return;
  const auto told = caught([&] {
    return left({.operation = operation_left,
                 .arguments = {},
                 .payload = {},
                 .requester = Holder::of(holder),
                 .seat = number});
  });
  static_cast<void>(told);  // no caller waits for the answer
}

// Requests that were not read are dropped with the seat: no process waits for them.
void Delegatee::free_seat(std::uint32_t number) {
  Seat& seat = desk_.seats()[number];
  for (Slot& slot : seat.slots) slot.state.store(SlotState::free, std::memory_order_relaxed);
  seat.event.sleepers.store(0, std::memory_order_relaxed);
  seat.holder.store(0, std::memory_order_release);
}

}  // namespace shima::delegate
