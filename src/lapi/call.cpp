// Active messages at their target: header handlers and completion handlers.
#include <fmt/format.h>

#include <cstring>

#include "base/log.h"
#include "lapi/engine.h"
#include "lapi/vector.h"

namespace shima::lapi {

// Calls the header handler; returns where the data goes: no pieces if it is to be dropped.
Pieces Engine::call_handler(int task, Arrival& arrival, std::byte* packet) {
  arrival.completion = nullptr;
  arrival.user_info = nullptr;
  arrival.inline_completion = false;
  const auto found = handlers_.find(arrival.head.address);
  if (!found) {
    report(found.error(), task, USER_ERR);
    return Pieces(std::vector<Piece>{});
  }
  lapi_return_info_t info{};
  info.msg_len = arrival.head.data_bytes;
  info.bytes = arrival.head.data_bytes;
  info.src = task;
  info.udata_one_pkt_ptr = arrival.head.data_bytes == 0 ? nullptr : packet;
  Pieces into(std::vector<Piece>{});
  if ((arrival.head.flags & vector_handler) != 0) {
    into = call_vector_handler(*found, arrival, info);
  } else {
    lapi_handle_t handle = options_.handle;
    uint header_bytes = arrival.user_header_bytes();
    void* header = header_bytes == 0 ? nullptr : arrival.user_header();
    void* place = reinterpret_cast<hdr_hndlr_t*>(*found)(
        &handle, header, &header_bytes, &info.msg_len, &arrival.completion, &arrival.user_info);
    if (place != nullptr) into = Pieces(place, arrival.head.data_bytes);
  }
  arrival.inline_completion =
      info.ret_flags == LAPI_SEND_REPLY || info.ret_flags == LAPI_LOCAL_STATE;
  if (info.ctl_flags == LAPI_BURY_MSG) return Pieces(std::vector<Piece>{});
  return into;
}

Pieces Engine::call_vector_handler(void* handler, Arrival& arrival, lapi_return_info_t& info) {
  lapi_handle_t handle = options_.handle;
  uint header_bytes = arrival.user_header_bytes();
  const bool has_lens = arrival.head.vector_type != LAPI_GEN_GENERIC && arrival.head.pieces != 0;
  ulong* lens = has_lens ? reinterpret_cast<ulong*>(arrival.header.data()) : &info.msg_len;
  const lapi_vec_t* into = reinterpret_cast<vhdr_hndlr_t*>(handler)(
      &handle, header_bytes == 0 ? nullptr : arrival.user_header(), &header_bytes, lens,
      &arrival.completion, &arrival.user_info);
  return into == nullptr ? Pieces(std::vector<Piece>{}) : pieces_of(*into);
}

void Engine::finish_active(int task, Arrival& arrival) {
  const Message& head = arrival.head;
  const bool by_address = (head.flags & data_by_address) != 0;
  if (by_address || head.data_bytes <= packet_bytes) {
    const Pieces into = call_handler(task, arrival, by_address ? nullptr : arrival.packet.data());
    const Pieces from = by_address ? Pieces(head.operands[0], head.data_bytes)
                                   : Pieces(arrival.packet.data(), head.data_bytes);
    Status copied;
    if (by_address)
      copied = copy(task, Direction::read, into, from);
    else
      for_each_pair(
          into.all(), from.all(), [](std::uint64_t to, std::uint64_t at, std::uint64_t len) {
            std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(at), len);
          });
    if (!copied) {
      report(copied.error(), task, COM_ERR);
      return send(task, {.kind = Kind::done, .flags = not_done, .ticket = head.ticket});
    }
  }
  if (by_address) send(task, {.kind = Kind::done, .flags = origin_free, .ticket = head.ticket});
  lapi_handle_t handle = options_.handle;
  auto complete_call = [this, task, handle, handler = arrival.completion, info = arrival.user_info,
                        counter = head.target_counter, ticket = head.ticket]() mutable {
    if (handler != nullptr) handler(&handle, info);
    finish_call(task, counter, ticket);
  };
  if (arrival.completion == nullptr || arrival.inline_completion)
    complete_call();
  else
    completions_.add(complete_call);
}

void Engine::finish_call(int task, std::uint64_t target_counter, std::uint64_t ticket) {
  if (target_counter != 0) grow_and_wake(counter_at(target_counter), task);
  if (ticket != 0) send(task, {.kind = Kind::done, .flags = complete, .ticket = ticket});
}

// Tells the log and the program's error handler.
void Engine::report(const Error& error, int task, lapi_err_t type) {
  log(LogLevel::warn, "LAPI: {}", describe(error));
  call_error_handler(task, type);
}

void Engine::call_error_handler(int task, lapi_err_t type) {
  if (options_.on_error == nullptr) return;
  lapi_handle_t handle = options_.handle;
  int code = type == COM_ERR ? LAPI_ERR_TASK_LOST : LAPI_ERR_HDR_HNDLR;
  int own = ways_->task();
  options_.on_error(&handle, &code, &type, &own, &task);
}

}  // namespace shima::lapi
