// Determines the network addresses at which the nodes of a job reach each other.
//
// Each node tells its addresses to the one that serves the job. A node that serves the job listens
// at those of its addresses whose network also contains an address of every other node, and of
// these at the private ones if there are any, so that networks that only lead outside cannot reach
// it.
#pragma once

#include <netinet/in.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace shima {

// Large enough for a sockaddr_in6 or a sockaddr_in; plain data. The port has the same offset in
// both.
using SocketAddress = sockaddr_in6;

[[nodiscard]] std::string name_of(const SocketAddress& address);
[[nodiscard]] socklen_t length_of(const SocketAddress& address);
[[nodiscard]] inline const sockaddr* as_sockaddr(const SocketAddress& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

// An address of this node, and the length of its network prefix.
struct OwnAddress {
  SocketAddress address;
  int network_bits = 0;
};

// The addresses that a node publishes; plain data.
struct NodeAddresses {
  static constexpr std::size_t most = 8;
  std::uint32_t count = 0;
  std::array<SocketAddress, most> all{};
};

// The addresses of interfaces that are up and lead to other nodes.
[[nodiscard]] std::vector<OwnAddress> own_addresses();
[[nodiscard]] NodeAddresses shown(std::span<const OwnAddress> own);

// The addresses where this node must listen for `others`. Without others: the loopback address.
// Empty if no address of this node shares a network with each of the others.
[[nodiscard]] std::vector<SocketAddress> shared_with(std::span<const OwnAddress> own,
                                                     std::span<const NodeAddresses> others);
// The same with a fallback, which is logged: the addresses from which the kernel would send to the
// others, or else all.
[[nodiscard]] std::vector<SocketAddress> listening_addresses(std::span<const OwnAddress> own,
                                                             std::span<const NodeAddresses> others);

}  // namespace shima
