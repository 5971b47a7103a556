// The messages from this task to another one that the stream has not taken yet.
//
// A message goes into the stream at once if it can. Otherwise it waits here: its head and header
// are copied, its data stays where it is unless the sender wants it copied.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "base/process/biased_mutex.h"
#include "lapi/operation.h"
#include "lapi/way/message.h"
#include "lapi/way/transport.h"

namespace shima::lapi {

// Whom to tell that a message has been sent.
struct Sent {
  lapi_cntr_t* counter = nullptr;
  int source = 0;  // that makes the counter grow
  scompl_hndlr_t* handler = nullptr;
  void* info = nullptr;
};

// A message that is being sent.
struct Sending {
  Message head;
  std::span<const std::byte> header;
  Walk data;
  std::uint64_t done_bytes = 0;  // of head and header
  std::uint64_t sent_bytes = 0;  // of all

  // Sends what the stream takes; true once all is sent.
  [[nodiscard]] bool push(Transport& way, int task);
};

class Outbox {
 public:
  // Sends or keeps a message; true if it has been sent.
  [[nodiscard]] bool send(Transport& way, int task, const Message& head,
                          std::span<const std::byte> header, const Pieces& data, bool copy_data,
                          const Sent& sent);
  // Sends what waits; appends the notices of what has been sent. False if there was no progress.
  bool flush(Transport& way, int task, std::vector<Sent>& sent);
  // Drops everything; returns the notices that will not come.
  [[nodiscard]] std::vector<Sent> drop();
  [[nodiscard]] std::size_t length() const { return length_.load(std::memory_order_seq_cst); }
  // Whether what waits makes the counter grow once it has been sent.
  [[nodiscard]] bool names(const lapi_cntr_t& counter);
  // How many messages that a fence waits for are in the stream or here.
  [[nodiscard]] std::uint64_t to_fence() const { return to_fence_.load(std::memory_order_acquire); }

 private:
  struct Waiting {
    Sending sending;
    std::vector<std::byte> header;
    std::vector<std::byte> copy;
    Pieces data;
    Sent sent;
  };
  void keep(Sending sending, const Pieces& data, bool copy_data, const Sent& sent);

  BiasedMutex mutex_;
  std::deque<Waiting> waiting_;
  std::atomic<std::size_t> length_{0};
  std::atomic<std::uint64_t> to_fence_{0};  // grows under mutex_
};

}  // namespace shima::lapi
