#include "lapi/way/meeting.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <fstream>
#include <string_view>

namespace shima::lapi {
namespace {

constexpr std::string_view meet_word = "meet=";
constexpr std::string_view key_word = " key=";

std::string hex(const ServiceAddress::Secret& secret) {
  std::string text;
  for (const std::byte byte : secret)
    text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return text;
}

bool parse_hex(std::string_view text, ServiceAddress::Secret& secret) {
  if (text.size() != 2 * secret.size()) return false;
  for (std::size_t i = 0; i < secret.size(); ++i) {
    unsigned value = 0;
    const char* begin = text.data() + 2 * i;
    const auto parsed = std::from_chars(begin, begin + 2, value, 16);
    if (parsed.ec != std::errc() || parsed.ptr != begin + 2) return false;
    secret[i] = static_cast<std::byte>(value);
  }
  return true;
}

// "10.0.0.1:4000" or "[fe80::1]:4000".
bool parse_endpoint(std::string_view text, SocketAddress& endpoint) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  std::uint16_t port = 0;
  const std::string_view digits = text.substr(colon + 1);
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size()) return false;
  const bool is_v6 = text.front() == '[' && text[colon - 1] == ']';
  const std::string host(is_v6 ? text.substr(1, colon - 2) : text.substr(0, colon));
  endpoint = {};
  endpoint.sin6_family = is_v6 ? AF_INET6 : AF_INET;
  endpoint.sin6_port = htons(port);
  void* place = is_v6 ? static_cast<void*>(&endpoint.sin6_addr)
                      : &reinterpret_cast<sockaddr_in&>(endpoint).sin_addr;
  return ::inet_pton(endpoint.sin6_family, host.c_str(), place) == 1;
}

bool parse_endpoints(std::string_view text, ServiceAddress& place) {
  while (!text.empty() && place.endpoint_count < ServiceAddress::most_endpoints) {
    const auto comma = std::min(text.find(','), text.size());
    if (!parse_endpoint(text.substr(0, comma), place.endpoints[place.endpoint_count++]))
      return false;
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return text.empty() && place.endpoint_count > 0;
}

}  // namespace

std::string describe(const ServiceAddress& place) {
  std::string text(meet_word);
  for (std::uint32_t i = 0; i < place.endpoint_count; ++i) {
    const SocketAddress& endpoint = place.endpoints[i];
    const bool is_v6 = endpoint.sin6_family == AF_INET6;
    text += fmt::format("{}{}{}{}:{}", i == 0 ? "" : ",", is_v6 ? "[" : "", name_of(endpoint),
                        is_v6 ? "]" : "", ntohs(endpoint.sin6_port));
  }
  return text + std::string(key_word) + hex(place.asker) + hex(place.keeper);
}

std::optional<ServiceAddress> parse_meeting(const char* text) {
  std::string_view rest = text != nullptr ? text : "";
  if (!rest.starts_with(meet_word)) return {};
  rest.remove_prefix(meet_word.size());
  const auto key = rest.find(key_word);
  ServiceAddress place;
  if (key == std::string_view::npos || !parse_endpoints(rest.substr(0, key), place)) return {};
  rest.remove_prefix(key + key_word.size());
  const std::size_t half = 2 * place.asker.size();
  if (rest.size() != 2 * half || !parse_hex(rest.substr(0, half), place.asker) ||
      !parse_hex(rest.substr(half), place.keeper))
    return {};
  return place;
}

HostName own_host() {
  HostName host{};
  std::array<char, 48> name{};
  std::string boot;
  ::gethostname(name.data(), name.size() - 1);
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  const std::string both = fmt::format("{} {}", name.data(), boot);
  std::memcpy(host.data(), both.data(), std::min(both.size(), host.size() - 1));
  return host;
}

}  // namespace shima::lapi
