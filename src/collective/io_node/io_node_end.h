// What the agent on an I/O node tells those that took part at the end of a call, and what it checks
// at the beginning. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "net/message_buffer.h"
#include "net/message_stream.h"
#include "store/subfile/directed_call.h"

namespace shima {

// The agent's last message of a call comes in this lane; no Lane has this number.
inline constexpr std::uint32_t end_lane = MessageStream::lane_count - 1;

// Followed by the text of an error.
struct CallEnd {
  std::uint32_t code = 0;
  std::int32_t sys_errno = 0;
  // For the counters. Only one of those that took part is told.
  std::uint64_t is_from_agent = 0;  // to this one
  std::uint64_t windows = 0;
  std::uint64_t runs = 0;
  std::uint64_t disk_bytes = 0;
};
inline constexpr std::size_t most_end_bytes = sizeof(CallEnd) + 1024;

[[nodiscard]] MessageBuffer encode_end(CallEnd end, const Status& status);
// An error, if the message is malformed; else the status of the call is in `status`.
[[nodiscard]] Result<CallEnd> decode_end(const MessageBuffer& message, Status& status);

// Whether such a call can be: bounded, and all its offsets are multiples of the granule.
[[nodiscard]] bool is_sound(const DirectedCall& call);

}  // namespace shima
