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
  barrier,    // code: the round
  gather,     // operands[0]: the value of the sender
  last,       // nothing follows in this stream
};

// Flags of a put.
inline constexpr std::uint8_t data_in_head = 1;  // the operands are the data
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
  std::uint8_t vector_type = 0;
  std::uint8_t code = 0;  // rmw: operation and size, see rmw_code(); barrier: the round
  std::uint32_t header_bytes = 0;
  std::uint64_t data_bytes = 0;
  std::uint64_t address = 0;  // active: the handler
  std::uint64_t target_counter = 0;
  std::uint64_t ticket = 0;  // 0: no reply is wanted
  std::array<std::uint64_t, 2> operands{};
  std::uint32_t pieces = 0;  // in the header
};
// What a stream carries of it: all but the padding, so that it fits into a line of a ByteRing.
inline constexpr std::size_t message_head_bytes = 60;
static_assert(offsetof(Message, pieces) + sizeof Message::pieces == message_head_bytes);

// Data of a put up to this size needs no bytes of the stream.
inline constexpr std::size_t most_data_in_head = sizeof Message::operands;

[[nodiscard]] inline bool has_data_in_head(const Message& message) {
  return message.kind == Kind::put && (message.flags & data_in_head) != 0;
}
// How many bytes follow the head and the header.
[[nodiscard]] inline std::uint64_t bytes_behind(const Message& message) {
  return has_data_in_head(message) ? 0 : message.data_bytes;
}

[[nodiscard]] constexpr std::uint8_t rmw_code(std::uint32_t operation, std::uint32_t size_bits) {
  return static_cast<std::uint8_t>(operation | size_bits);  // 32 or 64
}
[[nodiscard]] constexpr std::uint32_t rmw_operation(std::uint8_t code) { return code & 0x1fU; }
[[nodiscard]] constexpr std::uint32_t rmw_size_bits(std::uint8_t code) { return code & 0xe0U; }

// Whether a fence waits for messages of this kind.
[[nodiscard]] inline bool is_fenced(Kind kind) {
  return kind == Kind::active || kind == Kind::put || kind == Kind::get || kind == Kind::rmw ||
         kind == Kind::count;
}

// Limits that hold for every message; a peer that exceeds them is not one of ours.
inline constexpr std::uint32_t most_user_header_bytes = 64U << 10;
inline constexpr std::uint32_t most_pieces = 1U << 24;
inline constexpr std::uint32_t piece_bytes = 16;  // an address and a length

inline constexpr std::uint64_t most_data_bytes = INT64_MAX;
inline constexpr std::uint8_t most_barrier_rounds = 32;

// What a message may have besides its head, by its kind. Whether its numbers fit what it names is
// found out later (Engine::admit).
[[nodiscard]] inline bool well_formed(const Message& message) {
  if (message.pieces > most_pieces || message.data_bytes > most_data_bytes) return false;
  const bool has_header = message.header_bytes != 0;
  const bool has_data = message.data_bytes != 0;
  switch (message.kind) {
    case Kind::active: {
      const std::uint64_t listed = std::uint64_t{message.pieces} * sizeof(std::uint64_t);
      return message.header_bytes >= listed &&
             message.header_bytes - listed <= most_user_header_bytes &&
             (message.flags & ~(data_by_address | vector_handler)) == 0;
    }
    case Kind::put:
      return message.header_bytes == message.pieces * piece_bytes &&
             (!has_data_in_head(message) ||
              (!has_header && message.data_bytes <= most_data_in_head));
    case Kind::get:
      return message.header_bytes == message.pieces * piece_bytes && !has_data;
    case Kind::get_reply:
      return !has_header;
    case Kind::barrier:
      return !has_header && !has_data && message.code < most_barrier_rounds;
    case Kind::rmw:
    case Kind::rmw_reply:
    case Kind::count:
    case Kind::done:
    case Kind::fence:
    case Kind::gather:
    case Kind::last:
      return !has_header && !has_data;
  }
  return false;
}

}  // namespace shima::lapi
