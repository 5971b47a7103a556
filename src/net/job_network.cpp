#include "net/job_network.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/log.h"
#include "base/unique_fd.h"

namespace shima {
namespace {

using AddressBytes = std::span<const unsigned char>;

AddressBytes bytes_of(const SocketAddress& address) {
  if (address.sin6_family == AF_INET6) return {address.sin6_addr.s6_addr, 16};
  const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
  return {reinterpret_cast<const unsigned char*>(&v4.sin_addr), 4};
}

bool is_same(const SocketAddress& a, const SocketAddress& b) {
  return std::ranges::equal(bytes_of(a), bytes_of(b));
}

bool is_in_network(const OwnAddress& own, const SocketAddress& other) {
  const AddressBytes here = bytes_of(own.address);
  const AddressBytes there = bytes_of(other);
  if (here.size() != there.size()) return false;
  for (int bit = 0; bit < own.network_bits; ++bit) {
    const auto byte = static_cast<std::size_t>(bit / 8);
    if (((here[byte] ^ there[byte]) >> (7 - bit % 8) & 1) != 0) return false;
  }
  return true;
}

// RFC 1918, shared and link-local IPv4; unique local IPv6.
bool is_private(const SocketAddress& address) {
  const AddressBytes b = bytes_of(address);
  if (b.size() == 16) return (b[0] & 0xfe) == 0xfc;
  return b[0] == 10 || (b[0] == 172 && (b[1] & 0xf0) == 16) || (b[0] == 192 && b[1] == 168) ||
         (b[0] == 100 && (b[1] & 0xc0) == 64) || (b[0] == 169 && b[1] == 254);
}

bool leads_to_other_nodes(const ifaddrs& entry) {
  if (entry.ifa_addr == nullptr || entry.ifa_netmask == nullptr ||
      (entry.ifa_flags & IFF_UP) == 0 || (entry.ifa_flags & IFF_LOOPBACK) != 0)
    return false;
  if (entry.ifa_addr->sa_family == AF_INET) return true;
  if (entry.ifa_addr->sa_family != AF_INET6) return false;
  return !IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(entry.ifa_addr)->sin6_addr);
}

SocketAddress copy_of(const sockaddr& address, sa_family_t family) {
  SocketAddress copy{};
  std::memcpy(&copy, &address, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
  copy.sin6_family = family;
  copy.sin6_port = 0;
  return copy;
}

SocketAddress loopback() {
  SocketAddress address{};
  auto& v4 = reinterpret_cast<sockaddr_in&>(address);
  v4.sin_family = AF_INET;
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Whether the node has an address in the network of `own`. An equal address may belong to two
// machines (bridges for containers have one everywhere), so it counts only if no other address
// does.
bool reaches(const OwnAddress& own, const NodeAddresses& node, bool same_counts) {
  return std::ranges::any_of(
      std::span(node.all).first(node.count), [&](const SocketAddress& there) {
        return is_in_network(own, there) && (same_counts || !is_same(own.address, there));
      });
}

std::vector<SocketAddress> private_first(std::vector<SocketAddress> found) {
  if (std::ranges::any_of(found, is_private))
    std::erase_if(found, [](const SocketAddress& address) { return !is_private(address); });
  return found;
}

// The address from which the kernel would send to `there`; sends nothing.
bool find_source(const SocketAddress& there, SocketAddress& source) {
  const UniqueFd probe(::socket(there.sin6_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  SocketAddress to = there;
  to.sin6_port = htons(9);
  socklen_t len = sizeof source;
  source = {};
  if (!probe || ::connect(probe.get(), as_sockaddr(to), length_of(to)) != 0 ||
      ::getsockname(probe.get(), reinterpret_cast<sockaddr*>(&source), &len) != 0)
    return false;
  source.sin6_port = 0;
  return true;
}

std::vector<SocketAddress> sources_for(std::span<const OwnAddress> own,
                                       std::span<const NodeAddresses> others) {
  std::vector<SocketAddress> found;
  const auto is_own = [&](const SocketAddress& address) {
    return std::ranges::any_of(own,
                               [&](const OwnAddress& o) { return is_same(o.address, address); });
  };
  for (const NodeAddresses& node : others) {
    for (const SocketAddress& there : std::span(node.all).first(node.count)) {
      SocketAddress source{};
      if (is_own(there) || !find_source(there, source) || !is_own(source)) continue;
      if (std::ranges::none_of(found, [&](const auto& known) { return is_same(known, source); }))
        found.push_back(source);
    }
  }
  return found;
}

}  // namespace

std::string name_of(const SocketAddress& address) {
  char text[INET6_ADDRSTRLEN] = "";
  ::inet_ntop(address.sin6_family, bytes_of(address).data(), text, sizeof text);
  return text;
}

socklen_t length_of(const SocketAddress& address) {
  return address.sin6_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

std::vector<OwnAddress> own_addresses() {
  std::vector<OwnAddress> found;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return found;
  for (const ifaddrs* entry = all; entry != nullptr; entry = entry->ifa_next) {
    if (!leads_to_other_nodes(*entry)) continue;
    const sa_family_t family = entry->ifa_addr->sa_family;
    OwnAddress own{.address = copy_of(*entry->ifa_addr, family)};
    const SocketAddress mask = copy_of(*entry->ifa_netmask, family);
    for (const unsigned char byte : bytes_of(mask)) own.network_bits += std::popcount(byte);
    found.push_back(own);
  }
  ::freeifaddrs(all);
  return found;
}

NodeAddresses shown(std::span<const OwnAddress> own) {
  NodeAddresses addresses;
  for (const OwnAddress& each : own.first(std::min(own.size(), NodeAddresses::most)))
    addresses.all[addresses.count++] = each.address;
  return addresses;
}

std::vector<SocketAddress> shared_with(std::span<const OwnAddress> own,
                                       std::span<const NodeAddresses> others) {
  if (others.empty()) return {loopback()};
  std::vector<SocketAddress> found;
  for (const bool same_counts : {false, true}) {
    for (const OwnAddress& each : own)
      if (std::ranges::all_of(others, [&](const auto& o) { return reaches(each, o, same_counts); }))
        found.push_back(each.address);
    if (!found.empty()) break;
  }
  return private_first(std::move(found));
}

std::vector<SocketAddress> listening_addresses(std::span<const OwnAddress> own,
                                               std::span<const NodeAddresses> others) {
  std::vector<SocketAddress> found = shared_with(own, others);
  if (!found.empty()) return found;
  found = private_first(sources_for(own, others));
  if (!found.empty()) {
    log(LogLevel::info,
        "no network has an address of every node; rank 0 listens at the {} addresses from which it "
        "sends to the others",
        found.size());
    return found;
  }
  for (const OwnAddress& each : own) found.push_back(each.address);
  log(LogLevel::warn,
      "no route to the addresses of the other nodes; rank 0 listens at all its {} addresses",
      found.size());
  return found;
}

}  // namespace shima
