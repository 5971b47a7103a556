// Both ends of a connection prove that they have the same key, which is never sent.
//
// The server sends a random number, the client another one and its proof, the server its proof: an
// HMAC of both numbers and the role under the key. A proof is good for one connection only.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace shima {

using Key = std::vector<std::byte>;

// The content of the file without the white space at its end. access_denied if other users can
// read or replace the content: by its permissions, or because it is another user's than `owners`.
[[nodiscard]] Result<Key> read_key(const std::string& path, std::span<const uid_t> owners = {});

// These send and receive as long as the socket's time limits permit. `service` and `version`:
// what is spoken afterwards; both ends must agree. A wrong key is access_denied.
struct Spoken {
  std::array<char, 8> service{};
  std::uint32_t version = 0;
};
[[nodiscard]] Status prove_to_server(int socket, const Key& key, const Spoken& spoken);
// Returns which of the keys the client has. They must differ.
[[nodiscard]] Result<std::size_t> prove_to_client(int socket, std::span<const Key> keys,
                                                  const Spoken& spoken);

// Whether a server is there: it has sent something, or closed the connection, within the socket's
// time limit.
[[nodiscard]] bool hears_server(int socket);

}  // namespace shima
