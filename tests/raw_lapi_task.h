// A task of a LAPI job without an engine: sends any bytes to other tasks, and keeps what they send.
#pragma once

#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "lapi/way/message.h"
#include "lapi/way/ways.h"

namespace shima::lapi {

class RawTask {
 public:
  explicit RawTask(std::unique_ptr<Ways> ways) : ways_(std::move(ways)) {
    started_ = ways_->watch({.on_lost = [](int) {}, .serve = [this] { drain(); }});
  }
  RawTask(const RawTask&) = delete;
  RawTask& operator=(const RawTask&) = delete;
  ~RawTask() { ways_->leave(); }

  [[nodiscard]] const Status& started() const { return started_; }

  // False if the other task takes nothing for as long.
  bool send(int task, std::span<const std::byte> bytes,
            std::chrono::milliseconds patience = std::chrono::seconds(5)) {
    const auto until = std::chrono::steady_clock::now() + patience;
    while (!bytes.empty()) {
      const iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
      const std::size_t taken = ways_->to(task).push(task, std::span(&piece, 1));
      bytes = bytes.subspan(taken);
      drain();  // also sends what has been gathered
      ways_->to(task).notify(task);
      if (taken != 0) continue;
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    return true;
  }
  bool send(int task, const Message& message,
            std::chrono::milliseconds patience = std::chrono::seconds(5)) {
    return send(task, std::as_bytes(std::span(&message, 1)).first(message_head_bytes), patience);
  }

  // Whether a whole message with this ticket has come. What does not parse is never one.
  bool has_got(Kind kind, std::uint64_t ticket) {
    drain();
    const std::lock_guard hold(turn_);
    std::size_t at = 0;
    while (got_.size() - at >= message_head_bytes) {
      Message head;
      std::memcpy(static_cast<void*>(&head), got_.data() + at, message_head_bytes);
      if (head.kind == kind && head.ticket == ticket) return true;
      const std::uint64_t len = message_head_bytes + head.header_bytes + head.data_bytes;
      if (len > got_.size() - at) return false;
      at += len;
    }
    return false;
  }

 private:
  void drain() {
    const std::lock_guard hold(turn_);
    ways_->begin_round();
    std::vector<std::byte> part(4096);
    for (int task = 0; task < ways_->tasks(); ++task) {
      if (task == ways_->task()) continue;
      while (ways_->to(task).has_data(task)) {
        const iovec piece{part.data(), part.size()};
        const std::size_t taken = ways_->to(task).pull(task, std::span(&piece, 1));
        got_.insert(got_.end(), part.begin(), part.begin() + static_cast<std::ptrdiff_t>(taken));
        if (taken == 0) break;
      }
    }
    ways_->end_round(false);
  }

  std::mutex turn_;
  std::vector<std::byte> got_;
  std::unique_ptr<Ways> ways_;
  Status started_;
};

}  // namespace shima::lapi
