// Receives the messages of a client: few system calls, and time limits.
//
// Bytes are received into a small buffer, so that a short request costs one call; long data go
// straight to their place. A client may be silent between messages for as long as it likes, but not
// within one.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"

namespace shima::iod {

class Inbox {
 public:
  // `message_timeout`: for the rest of a message that has begun.
  Inbox(int socket, std::chrono::milliseconds message_timeout);

  // Waits for the first bytes of the next message; false at the end of the connection. Calls
  // `on_silence` once nothing has come for a second.
  [[nodiscard]] Result<bool> wait(const std::function<void()>& on_silence);
  [[nodiscard]] Status receive(std::span<std::byte> room);
  // What has been received beyond the last message.
  [[nodiscard]] std::vector<std::byte> take_rest();
  // Whether a part of a message that follows is here.
  [[nodiscard]] bool holds_more() const { return begin_ < end_; }

 private:
  [[nodiscard]] Result<std::size_t> receive_some(std::span<std::byte> room);
  void set_patience(std::chrono::milliseconds patience);

  int socket_;
  std::chrono::milliseconds message_timeout_;
  std::chrono::milliseconds slice_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::array<std::byte, 8192> buffer_;
};

}  // namespace shima::iod
