// The head of every message between tasks of a LAPI job; the same on every transport.
//
// A message is its head, `header_bytes` of header and `data_bytes` of data, in a stream of bytes
// from one task to another. Replies carry the ticket of the request, a number in a table of the
// requester, so that no task stores to an address only because a reply names it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace shima::lapi {

enum class Kind : std::uint8_t {
  active,     // header: lengths of the origin's pieces, then the user's header
  put,        // header: the target's pieces, if there is no address
  get,        // header: the target's pieces, if there is no address
  get_reply,  // data: what was asked for
  rmw,        // operands: input values
  rmw_reply,  // operands[0]: the previous value, or whether it was swapped
  count,      // the target counter grows; the data has been stored otherwise
  done,       // flags: what has been done at the target
  fence,      // asks for `done` after all earlier messages
  barrier,    // `code`: the round
  gather,     // operands[0]: the value of the sender
  last = gather,
};

// Flags of an active message.
inline constexpr std::uint8_t data_by_address = 1;  // operands[0]: where the origin has it
inline constexpr std::uint8_t vector_handler = 2;   // the handler returns a vector
// Flags of done.
inline constexpr std::uint8_t origin_free = 1;  // the origin's memory may be reused
inline constexpr std::uint8_t complete = 2;
inline constexpr std::uint8_t not_done = 4;  // the operation's counters will not grow

struct Message {
  Kind kind = Kind::done;
  std::uint8_t flags = 0;
  std::uint16_t vector_type = 0;
  std::uint32_t header_bytes = 0;
  std::uint64_t data_bytes = 0;
  std::uint64_t address = 0;  // active: the handler
  std::uint64_t target_counter = 0;
  std::uint64_t ticket = 0;  // 0: no reply is wanted
  std::array<std::uint64_t, 2> operands{};
  std::uint32_t pieces = 0;  // in the header
  std::uint32_t code = 0;    // rmw: operation and size
};
static_assert(sizeof(Message) == 64);

// Whether a fence waits for messages of this kind.
[[nodiscard]] inline bool is_fenced(Kind kind) {
  return kind == Kind::active || kind == Kind::put || kind == Kind::get || kind == Kind::rmw ||
         kind == Kind::count;
}

// Limits that hold for every message; a peer that exceeds them is not one of ours.
inline constexpr std::uint32_t most_user_header_bytes = 64U << 10;
inline constexpr std::uint32_t most_pieces = 1U << 24;
inline constexpr std::uint32_t most_header_bytes = most_pieces * 16 + most_user_header_bytes;

[[nodiscard]] inline bool well_formed(const Message& message) {
  return message.kind <= Kind::last && message.pieces <= most_pieces &&
         message.header_bytes <= most_header_bytes;
}

}  // namespace shima::lapi
