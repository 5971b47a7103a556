// Operations of a context at their origin.
#include <fmt/format.h>

#include <cstring>

#include "base/copy/distance.h"
#include "lapi/direct_rmw.h"
#include "lapi/engine.h"

namespace shima::lapi {
namespace {

// From this size on, process_vm_* is cheaper than two copies through a ring.
constexpr std::uint64_t copy_from_bytes = 16 << 10;

// Puts one address into the message; the pieces of several are its header, which is returned.
std::span<const std::byte> name_target(Message& message, const Pieces& target) {
  if (!target.is_many()) {
    message.address = target.all().front().address;
    return {};
  }
  const auto header = std::as_bytes(std::span<const Piece>(target.all()));
  message.pieces = static_cast<std::uint32_t>(target.all().size());
  message.header_bytes = static_cast<std::uint32_t>(header.size());
  return header;
}

}  // namespace

Status Engine::check_target(int task) {
  if (!is_gone(task)) return {};
  return fail(Code::peer_lost,
              fmt::format("task {} has {}", task,
                          way(task).standing(task) == Standing::left
                              ? "left the job (LAPI_Term, or the end of its program)"
                              : "ended without LAPI_Term, or cannot be reached"));
}

void Engine::grow_and_wake(lapi_cntr_t* counter, int source) {
  if (counter == nullptr) return;
  grow(*counter, source);
  ways_->wake_attendants();
}

void Engine::tell(const Sent& sent, int task, uint reason) {
  ++sends_completed_;
  if (reason == LAPI_SUCCESS)
    grow_and_wake(sent.counter, sent.source);
  else
    operations_.note_failure(sent.counter, task);
  if (sent.handler == nullptr) return;
  lapi_handle_t handle = options_.handle;
  lapi_sh_info_t info{static_cast<uint>(task), reason, {}};
  sent.handler(&handle, sent.info, &info);
}

void Engine::tell_done(const Notices& notices, int task) {
  if (notices.origin != nullptr || notices.sent != nullptr)
    tell({notices.origin, task, notices.sent, notices.sent_info}, task, LAPI_SUCCESS);
  grow_and_wake(notices.complete, task);
  if (notices.arrived == nullptr) return;
  completions_.add([handle = options_.handle, notices]() mutable {
    notices.arrived(&handle, notices.arrived_info);
  });
}

void Engine::tell_failed(const Operation& operation) {
  const Notices& notices = operation.notices;
  if (notices.sent != nullptr && (operation.expected == 0 || (operation.expected & origin_free)))
    tell({nullptr, operation.task, notices.sent, notices.sent_info}, operation.task,
         LAPI_ERR_TASK_LOST);
}

void Engine::send(int task, const Message& message, std::span<const std::byte> header,
                  const Pieces& data, bool copy_data, const Sent& sent) {
  Peer& peer = peers_[static_cast<std::size_t>(task)];
  if (is_gone(task)) {
    tell(sent, task, LAPI_ERR_TASK_LOST);
    if (peer.is_gone) fail_operations(task);  // with the one of this message
    return;
  }
  const bool is_program = is_fenced(message.kind);
  if (!is_program) send_owed(task);
  const bool is_sent = peer.outbox.send(way(task), task, message, header, data, copy_data, sent);
  way(task).notify(task);
  if (is_program) {
    send_owed(task);
    note_answer(peer);
  }
  if (is_sent) tell(sent, task, LAPI_SUCCESS);
  if (peer.is_gone) return fail_operations(task);
  if (is_sent) return;
  std::ignore = flush();  // another thread may have found no room before there was some
  throttle(task);
}

void Engine::send_done(int task, std::uint64_t ticket) {
  send(task, {.kind = Kind::done, .flags = complete, .ticket = ticket});
}

// Whether the program, which polls in a loop, may go on before this round has done all that it
// can. The helper looks every millisecond whether the program still polls, and else does the rest.
bool Engine::answers_first(int task) {
  return program_goes_on_ && interrupts() && ways_->is_near(task) &&
         bell_.polling.load(std::memory_order_seq_cst) != 0;
}

void Engine::owe_done(int task, std::uint64_t ticket) {
  Peer& peer = peers_[static_cast<std::size_t>(task)];
  if (!answers_first(task)) return send_done(task, ticket);
  if (peer.is_answered_late.load(std::memory_order_relaxed)) {
    peer.told_at = Clock::now().time_since_epoch().count();
    return send_done(task, ticket);
  }
  send_owed(task);
  peer.owed.store(ticket, std::memory_order_release);
}

// The program neither sends nor polls: what is owed has waited in vain.
void Engine::note_late_answers() {
  for (Peer& peer : peers_)
    if (peer.owed.load(std::memory_order_relaxed) != 0) peer.is_answered_late = true;
}

// The program sends to a task.
void Engine::note_answer(Peer& peer) {
  constexpr auto gap = std::chrono::microseconds(20);
  if (!peer.is_answered_late.load(std::memory_order_relaxed)) return;
  const Clock::duration now = Clock::now().time_since_epoch();
  if (now - Clock::duration(peer.told_at) < gap) peer.is_answered_late = false;
}

void Engine::send_owed(int task) {
  auto& owed = peers_[static_cast<std::size_t>(task)].owed;
  if (owed.load(std::memory_order_relaxed) == 0) return;
  if (const std::uint64_t ticket = owed.exchange(0)) send_done(task, ticket);
}

// Before this task leaves. What still waits for room does not come.
void Engine::send_last(int task) {
  Outbox& outbox = peers_[static_cast<std::size_t>(task)].outbox;
  if (outbox.length() == 0 && way(task).wants_last(task))
    std::ignore = outbox.send(way(task), task, {.kind = Kind::last}, {}, {}, false, {});
}

// Keeps a stream of operations from filling memory.
void Engine::throttle(int task) {
  constexpr std::size_t most = 256;
  const Outbox& outbox = peers_[static_cast<std::size_t>(task)].outbox;
  if (outbox.length() < most || way(task).standing(task) != Standing::running) return;
  std::ignore =
      wait([&] { return outbox.length() < most / 2; }, [&] { return check_target(task); });
}

// Sends what waits in the outboxes, or is owed.
bool Engine::flush() {
  bool moved = false;
  for (int task = 0; task < tasks_; ++task) {
    send_owed(task);
    Outbox& outbox = peers_[static_cast<std::size_t>(task)].outbox;
    if (outbox.length() == 0) continue;
    std::vector<Sent> sent;
    if (!outbox.flush(way(task), task, sent)) continue;
    moved = true;
    way(task).notify(task);
    for (const Sent& one : sent) tell(one, task, LAPI_SUCCESS);
  }
  return moved;
}

void Engine::grow_at_target(int task, std::uint64_t counter) {
  if (counter == 0) return;
  if (way(task).reach(task) == Reach::pointer) {
    grow(*counter_at(counter), ways_->task());
    way(task).wake_waiters(task);
    return;
  }
  Message message{.kind = Kind::count, .target_counter = counter};
  send(task, message);
}

Status Engine::copy(int task, Direction direction, const Pieces& here, const Pieces& there) {
  switch (way(task).reach(task)) {
    case Reach::none:
      return fail(Code::peer_lost,
                  fmt::format("the memory of task {} cannot be reached (any more)", task));
    case Reach::copy: {
      const Status copied = way(task).copy(task, direction, here.all(), there.all());
      if (copied) return {};
      return fail(copied.error().code,
                  fmt::format("the memory of task {}: {}", task, copied.error().what.c_str()),
                  copied.error().sys_errno);
    }
    case Reach::pointer:
      break;
  }
  for_each_pair(here.all(), there.all(),
                [&](std::uint64_t own, std::uint64_t far, std::uint64_t len) {
                  const bool is_read = direction == Direction::read;
                  move_bytes(reinterpret_cast<void*>(is_read ? own : far),
                             reinterpret_cast<const void*>(is_read ? far : own), len);
                });
  return {};
}

Status Engine::put(int task, const Pieces& target, const Pieces& origin,
                   std::uint64_t target_counter, const Notices& notices) {
  SHIMA_TRY(check_target(task));
  const std::uint64_t len_bytes = origin.len_bytes();
  const Reach reach = way(task).reach(task);
  if (reach == Reach::pointer || (reach == Reach::copy && len_bytes >= copy_from_bytes)) {
    SHIMA_TRY(copy(task, Direction::write, origin, target));
    grow_at_target(task, target_counter);
    tell_done(notices, task);
    return {};
  }
  Message message{.kind = Kind::put, .data_bytes = len_bytes, .target_counter = target_counter};
  const auto header = name_target(message, target);
  const bool in_head =
      len_bytes > 0 && len_bytes <= most_data_in_head && header.empty() && !origin.is_many();
  if (in_head) {
    message.flags = data_in_head;
    std::memcpy(message.operands.data(), origin.all().front().data(), len_bytes);
  }
  if (notices.complete != nullptr)
    message.ticket = operations_.add(
        {.task = task, .expected = complete, .notices = {.complete = notices.complete}});
  send(task, message, header, in_head ? Pieces() : origin, false,
       {notices.origin, task, notices.sent, notices.sent_info});
  return {};
}

Status Engine::get(int task, const Pieces& target, const Pieces& origin,
                   std::uint64_t target_counter, const Notices& notices) {
  SHIMA_TRY(check_target(task));
  if (way(task).reach(task) != Reach::none) {
    SHIMA_TRY(copy(task, Direction::read, origin, target));
    grow_at_target(task, target_counter);
    tell_done(notices, task);
    return {};
  }
  Message message{.kind = Kind::get, .target_counter = target_counter};
  const auto header = name_target(message, target);
  message.operands[0] = origin.len_bytes();
  message.ticket = operations_.add({.task = task, .notices = notices, .destination = origin});
  send(task, message, header);
  return {};
}

Status Engine::send_active(int task, const Call& call, const Pieces& data,
                           std::uint64_t target_counter, const Notices& notices) {
  SHIMA_TRY(check_target(task));
  Message message{.kind = Kind::active,
                  .flags = call.vector ? vector_handler : std::uint8_t{0},
                  .vector_type = static_cast<std::uint8_t>(call.vector_type),
                  .data_bytes = data.len_bytes(),
                  .address = call.handler,
                  .target_counter = target_counter,
                  .pieces = static_cast<std::uint32_t>(call.lens.size())};
  std::vector<std::byte> header(call.lens.size_bytes() + call.header.size());
  if (!call.lens.empty()) std::memcpy(header.data(), call.lens.data(), call.lens.size_bytes());
  if (!call.header.empty())
    std::memcpy(header.data() + call.lens.size_bytes(), call.header.data(), call.header.size());
  message.header_bytes = static_cast<std::uint32_t>(header.size());
  const bool by_address = !data.is_many() && !call.copy && message.data_bytes >= copy_from_bytes &&
                          way(task).reach(task) != Reach::none && task != ways_->task();
  const auto expected = static_cast<std::uint8_t>((notices.complete != nullptr ? complete : 0) |
                                                  (by_address ? origin_free : 0));
  if (expected != 0) {
    Notices later = notices;
    if (!by_address) later.origin = nullptr, later.sent = nullptr;
    message.ticket = operations_.add({.task = task, .expected = expected, .notices = later});
  }
  if (!by_address) {
    send(task, message, header, data, call.copy,
         {notices.origin, task, notices.sent, notices.sent_info});
    return {};
  }
  message.flags |= data_by_address;
  message.operands[0] = data.all().front().address;
  send(task, message, header);
  return {};
}

Status Engine::rmw(int task, const RmwRequest& request, const Notices& notices) {
  SHIMA_TRY(check_target(task));
  if (request.variable % (request.size_bits / 8) != 0)
    return fail(Code::bad_argument,
                fmt::format("the variable at {:#x} is not aligned to its {} bytes",
                            request.variable, request.size_bits / 8));
  if (way(task).reach(task) == Reach::pointer) {
    const std::uint64_t previous =
        rmw_here(request.operation, request.size_bits, request.variable, request.input);
    store_previous(request.previous, request.size_bits, previous);
    tell_done(notices, task);
    return {};
  }
  Message message{.kind = Kind::rmw,
                  .code = rmw_code(request.operation, request.size_bits),
                  .address = request.variable,
                  .operands = request.input};
  message.ticket = operations_.add({.task = task,
                                    .notices = notices,
                                    .previous = request.previous,
                                    .size_bits = request.size_bits});
  send(task, message);
  return {};
}

}  // namespace shima::lapi
