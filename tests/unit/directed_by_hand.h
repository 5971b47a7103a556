// The messages of one that takes part in a collective call that an I/O node directs, sent by hand.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "collective/io_node/io_node_end.h"
#include "collective/window/window_message.h"
#include "group/messenger.h"
#include "net/message_stream.h"

namespace shima::by_hand {

inline void request(MessageStream& stream, WindowId first, WindowId second = {}) {
  MessageBuffer message(sizeof(WindowRequest));
  std::span<std::byte> out = message.bytes();
  put_into(out, WindowRequest{first, second});
  stream.send(static_cast<std::uint32_t>(Lane::request), std::move(message));
}

inline MessageBuffer wait_for(MessageStream& stream, std::uint32_t lane, std::size_t most_bytes) {
  const std::uint64_t number = stream.expect(lane, MessageBuffer(most_bytes));
  while (stream.status()) {
    stream.progress();
    if (auto message = stream.take(lane, number)) return *std::move(message);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ADD_FAILURE() << describe(stream.status().error());
  return {};
}
inline MessageBuffer wait_for(MessageStream& stream, Lane lane, std::size_t most_bytes) {
  return wait_for(stream, static_cast<std::uint32_t>(lane), most_bytes);
}

// The message of a window whose first granules it has, once it is granted: one run, and its bytes.
inline void send_run(MessageStream& stream, const WindowHead& head, std::uint64_t granules,
                     std::size_t data_bytes, std::byte value) {
  wait_for(stream, Lane::grant, sizeof(WindowGrant));
  MessageBuffer message(sizeof head + 2 * sizeof(std::uint64_t) + data_bytes);
  std::span<std::byte> out = message.bytes();
  put_into(out, head);
  put_into(out, std::uint64_t{1});  // one run follows
  put_into(out, granules << 32U);
  std::ranges::fill(out, value);
  stream.send(static_cast<std::uint32_t>(Lane::to_agent), std::move(message));
}

inline Code end_of(MessageStream& stream) {
  Status status;
  EXPECT_TRUE(decode_end(wait_for(stream, end_lane, most_end_bytes), status).has_value());
  return status ? Code::ok : status.error().code;
}

}  // namespace shima::by_hand
