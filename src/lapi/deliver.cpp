// Messages of a context at their target.
#include <algorithm>
#include <array>
#include <cstring>

#include "lapi/direct_rmw.h"
#include "lapi/engine.h"

namespace shima::lapi {
namespace {

constexpr std::string_view malformed = "has sent a message that is malformed";

}  // namespace

bool Engine::receive(int task) {
  constexpr int most_steps = 64;  // the other tasks shall have their turns
  Arrival& arrival = peers_[static_cast<std::size_t>(task)].arrival;
  bool moved = false;
  for (int i = 0; way(task).has_data(task); ++i) {
    if (i == most_steps) {
      has_left_messages_ = true;
      break;
    }
    moved |= receive_step(task, arrival);
    if (has_told_program_ && answers_first(task)) break;
  }
  return moved;
}

// Continues at arrival.got_bytes; true once all has been received.
bool Engine::pull(int task, Arrival& arrival, std::span<std::byte> all) {
  const std::span<std::byte> missing = all.subspan(arrival.got_bytes);
  const iovec rest{missing.data(), missing.size()};
  arrival.got_bytes += way(task).pull(task, std::span(&rest, 1));
  return arrival.got_bytes == all.size();
}

// Returns whether anything has been received.
bool Engine::receive_step(int task, Arrival& arrival) {
  const bool continues = arrival.stage == Arrival::Stage::data;
  const std::uint64_t left_bytes = arrival.left_bytes;
  if (arrival.stage == Arrival::Stage::head) {
    const auto head = std::as_writable_bytes(std::span(&arrival.head, 1));
    if (!pull(task, arrival, head.first(message_head_bytes))) return true;
    if (!well_formed(arrival.head)) return give_up(task, malformed);
    arrival.header.clear();
    arrival.got_bytes = 0;
    arrival.stage = Arrival::Stage::header;
  }
  if (arrival.stage == Arrival::Stage::header) {
    const auto is_complete = caught([&] { return receive_header(task, arrival); });
    if (!is_complete) return give_up(task, malformed);
    if (!*is_complete) return true;
    arrival.stage = Arrival::Stage::data;
    begin(task, arrival);
  }
  if (!receive_data(task, arrival)) return !continues || arrival.left_bytes != left_bytes;
  finish_message(task, arrival);
  served_.store(served_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  arrival.stage = Arrival::Stage::head;
  arrival.got_bytes = 0;
  return true;
}

// True once it is complete; an error if the message is malformed. Takes memory for what has
// arrived, not for what the head promises.
Result<bool> Engine::receive_header(int task, Arrival& arrival) {
  constexpr std::size_t most_ahead = std::size_t{1} << 20;
  const std::size_t len_bytes = arrival.head.header_bytes;
  while (arrival.got_bytes < len_bytes) {
    arrival.header.resize(std::min(len_bytes, arrival.got_bytes + most_ahead));
    if (!pull(task, arrival, arrival.header)) return false;
  }
  SHIMA_TRY(admit(task, arrival));
  return true;
}

// True once all data has arrived. Data without a destination is dropped.
bool Engine::receive_data(int task, Arrival& arrival) {
  std::array<std::byte, 4096> dropped;
  while (arrival.left_bytes > 0) {
    std::array<iovec, 64> parts;
    std::size_t count = arrival.walk.describe(parts, arrival.left_bytes);
    if (count == 0) {
      parts[0] = {dropped.data(), std::min<std::uint64_t>(arrival.left_bytes, dropped.size())};
      count = 1;
    }
    const std::uint64_t taken = way(task).pull(task, std::span(parts).first(count));
    if (taken == 0) return false;
    arrival.walk.advance_far(taken);
    arrival.left_bytes -= taken;
  }
  return true;
}

// Decides where the data of a message goes.
void Engine::begin(int task, Arrival& arrival) {
  const Message& head = arrival.head;
  arrival.left_bytes = 0;
  if (head.kind != Kind::active && bytes_behind(head) == 0) return;
  Pieces into(std::vector<Piece>{});
  arrival.packet.clear();
  if (head.kind == Kind::active && (head.flags & data_by_address) != 0)
    return;  // finish_active() fetches it
  if (head.kind == Kind::active && !arrival.is_refused) {
    if (head.data_bytes <= packet_bytes) {
      arrival.packet.resize(head.data_bytes);
      into = Pieces(arrival.packet.data(), head.data_bytes);
    } else {
      into = call_handler(task, arrival, nullptr);
    }
  } else if (!arrival.is_refused && (head.kind == Kind::put || head.kind == Kind::get_reply)) {
    into = std::move(arrival.named);
  }
  arrival.start_data(std::move(into));
}

void Engine::finish_message(int task, Arrival& arrival) {
  // Only the dispatcher changes it.
  receives_completed_.store(receives_completed_.load(std::memory_order_relaxed) + 1,
                            std::memory_order_relaxed);
  const Message& head = arrival.head;
  if (arrival.is_refused) return refuse(task, head);
  switch (head.kind) {
    case Kind::active:
      return finish_active(task, arrival);
    case Kind::put:
      return finish_put(task, head);
    case Kind::get:
      return serve_get(task, arrival);
    case Kind::get_reply:
      return finish_get(task, head);
    case Kind::rmw:
      return serve_rmw(task, head);
    case Kind::rmw_reply:
      return finish_rmw(task, head);
    case Kind::count:
      return grow_for_program(task, head.target_counter);
    case Kind::done:
      return finish_done(task, head);
    case Kind::fence:
      return send(task, {.kind = Kind::done, .flags = complete, .ticket = head.ticket});
    case Kind::barrier:
      ++barrier_messages_[head.code];
      return ways_->wake_attendants();
    case Kind::gather: {
      const std::lock_guard hold(gathering_);
      peers_[static_cast<std::size_t>(task)].gathered.push_back(head.operands[0]);
      return ways_->wake_attendants();
    }
    case Kind::last:
      return way(task).note_last(task);
  }
}

void Engine::grow_for_program(int task, std::uint64_t counter) {
  if (counter == 0) return;
  grow_and_wake(counter_at(counter), task);
  has_told_program_ = true;
}

void Engine::finish_put(int task, const Message& head) {
  if (has_data_in_head(head))
    std::memcpy(reinterpret_cast<void*>(head.address), head.operands.data(), head.data_bytes);
  grow_for_program(task, head.target_counter);
  if (head.ticket == 0) return;
  if (head.target_counter != 0)
    owe_done(task, head.ticket);
  else
    send_done(task, head.ticket);
}

void Engine::serve_get(int task, const Arrival& arrival) {
  const Message reply{.kind = Kind::get_reply,
                      .data_bytes = arrival.head.operands[0],
                      .ticket = arrival.head.ticket};
  send(task, reply, {}, arrival.named, false, {counter_at(arrival.head.target_counter), task});
}

void Engine::finish_get(int task, const Message& head) {
  if (const auto operation = operations_.take(head.ticket, task))
    tell_done(operation->notices, task);
}

void Engine::serve_rmw(int task, const Message& head) {
  const auto operation = static_cast<RMW_ops_t>(rmw_operation(head.code));
  const std::uint32_t size_bits = rmw_size_bits(head.code);
  Message reply{.kind = Kind::rmw_reply, .ticket = head.ticket};
  reply.operands[0] = rmw_here(operation, size_bits, head.address, head.operands);
  send(task, reply);
}

void Engine::finish_rmw(int task, const Message& head) {
  const auto operation = operations_.take(head.ticket, task);
  if (!operation) return;
  store_previous(operation->previous, operation->size_bits, head.operands[0]);
  tell_done(operation->notices, task);
}

void Engine::finish_done(int task, const Message& head) {
  if ((head.flags & not_done) != 0) {
    if (const auto operation = operations_.fail(head.ticket, task)) tell_failed(*operation);
    return ways_->post_attendants();
  }
  if (const auto notices = operations_.note_done(head.ticket, task, head.flags))
    tell_done(*notices, task);
}

}  // namespace shima::lapi
