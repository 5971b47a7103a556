// TCP connections between the nodes of a job.
//
// A client connects and sends a secret, and the server sends another one; both were exchanged in
// the job's own messages, because an address may reach another user's server, and another user's
// client may reach ours. What follows is up to the service.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "base/unique_fd.h"
#include "net/job_network.h"

namespace shima {

// The addresses of a server; the members send it to each other as bytes. No endpoint: unreachable.
struct ServiceAddress {
  using Secret = std::array<std::byte, 16>;
  static constexpr std::size_t most_endpoints = 8;

  Secret asker{};
  Secret keeper{};
  std::uint32_t endpoint_count = 0;
  std::array<SocketAddress, most_endpoints> endpoints{};
};

// These resume after signals and short transfers; false with errno, ECONNRESET if the peer has
// closed the connection. `more_follows` at once: the kernel need not send this part alone.
[[nodiscard]] bool send_all(int socket, const void* data, std::size_t len_bytes,
                            bool more_follows = false);
[[nodiscard]] bool receive_all(int socket, void* data, std::size_t len_bytes);
void answer_at_once(int socket);
// The time after which a machine that does not answer is lost (SHIMA_NODE_TIMEOUT).
[[nodiscard]] std::chrono::seconds node_timeout();
// For each later send and receive that waits; zero: never.
void give_up_after(int socket, std::chrono::milliseconds timeout);
// Lets the kernel close the connection, with ETIMEDOUT, if the other machine has not answered for
// `timeout`, and lifts other limits. A machine answers for its processes also while they compute or
// are stopped; but if the process does not receive, so that there is no room for what is sent, this
// is no answer.
void close_if_unreachable(int socket, std::chrono::seconds timeout);
// The same, but only while nothing is being sent: a process that does not receive is not lost.
void probe_when_silent(int socket, std::chrono::seconds timeout);

// Connects; false with errno. A signal does not end it; `timeout`: the socket's own.
[[nodiscard]] bool connect_all(int socket, const sockaddr* address, socklen_t len,
                               std::chrono::milliseconds timeout);
// A connection to a server, which has proved that it is the one, through the first endpoint that
// answers. `timeout` applies to each connect, each send and each receive, also to later ones until
// close_if_unreachable(). An error lists the endpoints and has the errno of the last.
[[nodiscard]] Result<UniqueFd> connect_to(const ServiceAddress& address,
                                          std::chrono::milliseconds timeout);

}  // namespace shima
