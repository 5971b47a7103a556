// Messages of a context at their target.
#include <fmt/format.h>

#include <array>
#include <cstring>

#include "base/log.h"
#include "lapi/direct_rmw.h"
#include "lapi/engine.h"
#include "lapi/vector.h"

namespace shima::lapi {
namespace {

// The pieces that the header of a put or get lists, or its one address. False if it is malformed.
bool read_pieces(const Arrival& arrival, std::uint64_t len_bytes, Pieces& pieces) {
  const Message& head = arrival.head;
  if (head.pieces == 0) {
    pieces = Pieces(head.address, len_bytes);
    return head.header_bytes == 0;
  }
  if (head.header_bytes != head.pieces * sizeof(Piece)) return false;
  std::vector<Piece> many(head.pieces);
  std::memcpy(many.data(), arrival.header.data(), arrival.header.size());
  pieces = Pieces(std::move(many));
  return pieces.len_bytes() >= len_bytes;
}

}  // namespace

bool Engine::receive(int task) {
  constexpr int most_steps = 64;  // the other tasks shall have their turns
  Arrival& arrival = peers_[static_cast<std::size_t>(task)].arrival;
  bool moved = false;
  for (int i = 0; i < most_steps && way(task).has_data(task); ++i) {
    moved |= receive_step(task, arrival);
    if (program_goes_on_ && has_told_program_) break;
  }
  return moved;
}

bool Engine::receive_step(int task, Arrival& arrival) {
  const auto pull = [&](void* begin, std::size_t len_bytes) {
    const iovec rest{static_cast<std::byte*>(begin) + arrival.got_bytes,
                     len_bytes - arrival.got_bytes};
    arrival.got_bytes += way(task).pull(task, std::span(&rest, 1));
    return arrival.got_bytes == len_bytes;
  };
  if (arrival.stage == Arrival::Stage::head) {
    if (!pull(&arrival.head, message_head_bytes)) return true;
    if (!well_formed(arrival.head)) {
      give_up(task);
      return false;
    }
    arrival.header.resize(arrival.head.header_bytes);
    arrival.got_bytes = 0;
    arrival.stage = Arrival::Stage::header;
  }
  if (arrival.stage == Arrival::Stage::header) {
    if (!arrival.header.empty() && !pull(arrival.header.data(), arrival.header.size())) return true;
    arrival.stage = Arrival::Stage::data;
    begin(task, arrival);
  }
  if (!receive_data(task, arrival)) return true;
  finish_message(task, arrival);
  arrival.stage = Arrival::Stage::head;
  arrival.got_bytes = 0;
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

// The header of a message is complete: decides where its data goes.
void Engine::begin(int task, Arrival& arrival) {
  Message& head = arrival.head;
  Pieces into(std::vector<Piece>{});
  switch (head.kind) {
    case Kind::active:
      if (arrival.lens_bytes() > arrival.header.size()) head.pieces = 0;
      arrival.packet.clear();
      if ((head.flags & data_by_address) != 0) return;  // finish_active() fetches it
      if (head.data_bytes <= packet_bytes) {
        arrival.packet.resize(head.data_bytes);
        into = Pieces(arrival.packet.data(), head.data_bytes);
      } else {
        into = call_handler(task, arrival, nullptr);
      }
      break;
    case Kind::put:
      if (!read_pieces(arrival, head.data_bytes, into)) into = Pieces(std::vector<Piece>{});
      break;
    case Kind::get_reply:
      into = operations_.destination(head.ticket, task);
      break;
    default:
      break;
  }
  arrival.start_data(std::move(into));
}

void Engine::finish_message(int task, Arrival& arrival) {
  // Only the dispatcher changes it.
  receives_completed_.store(receives_completed_.load(std::memory_order_relaxed) + 1,
                            std::memory_order_relaxed);
  const Message& head = arrival.head;
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
      if (head.code < barrier_messages_.size()) ++barrier_messages_[head.code];
      return ways_->wake_attendants();
    case Kind::gather: {
      const std::lock_guard hold(gathering_);
      peers_[static_cast<std::size_t>(task)].gathered.push_back(head.operands[0]);
      return ways_->wake_attendants();
    }
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

void Engine::serve_get(int task, Arrival& arrival) {
  const std::uint64_t len_bytes = arrival.head.operands[0];
  Pieces from;
  Message reply{.kind = Kind::get_reply, .data_bytes = len_bytes, .ticket = arrival.head.ticket};
  if (!read_pieces(arrival, len_bytes, from) || from.len_bytes() != len_bytes) {
    give_up(task);
    return;
  }
  send(task, reply, {}, from, false, {counter_at(arrival.head.target_counter), task});
}

void Engine::finish_get(int task, const Message& head) {
  if (const auto operation = operations_.take(head.ticket, task))
    tell_done(operation->notices, task);
}

void Engine::serve_rmw(int task, const Message& head) {
  const auto operation = static_cast<RMW_ops_t>(rmw_operation(head.code));
  const std::uint32_t size_bits = rmw_size_bits(head.code);
  if ((size_bits != 32 && size_bits != 64) || head.address % (size_bits / 8) != 0 ||
      operation > COMPARE_AND_SWAP) {
    give_up(task);
    return;
  }
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
