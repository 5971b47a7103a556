// The TCP protocol between the server of shared file pointers and its clients.
//
// A client connects and sends a secret, and the server sends another one; both were exchanged in
// the job's own messages, because the address may reach another user's server, and another user's
// client may reach ours. Then the client sends requests one at a time and gets an answer of 8 bytes
// for each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "group/pointer/job_network.h"

namespace shima {

// The server's addresses; the members send it to each other as bytes. No endpoint: unreachable.
struct PointerAddress {
  using Secret = std::array<std::byte, 16>;
  static constexpr std::size_t most_endpoints = 8;

  Secret asker{};
  Secret keeper{};
  std::uint32_t endpoint_count = 0;
  std::array<SocketAddress, most_endpoints> endpoints{};
};

struct PointerRequest {
  enum Operation : std::uint32_t { advance, set };

  std::uint64_t file = 0;
  std::uint32_t turn = 0;  // index of one of the file's two words
  Operation operation = advance;
  std::int64_t value = 0;
  // A repeated request is executed once: a client repeats it if the connection ended before the
  // answer. Client 0 repeats nothing.
  std::uint64_t client = 0;
  std::uint64_t serial = 0;
};

// These resume after signals and short transfers; false with errno, ECONNRESET if the peer has
// closed the connection.
[[nodiscard]] bool send_all(int socket, const void* data, std::size_t len_bytes);
[[nodiscard]] bool receive_all(int socket, void* data, std::size_t len_bytes);
void answer_at_once(int socket);

}  // namespace shima
