// Where a target on another machine is: "iod://HOST:PORT/NAME", as lists of targets have it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace shima::remote {

inline constexpr std::string_view scheme = "iod://";

struct Node {
  std::string host;  // a name or an address; empty: all addresses, to listen at
  std::string port;
  friend bool operator==(const Node&, const Node&) = default;

  // "[::1]:7000" for an address that has colons itself.
  [[nodiscard]] std::string name() const {
    return (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" + port;
  }
};

struct Place {
  Node node;
  std::string target;
  friend bool operator==(const Place&, const Place&) = default;
};

// "HOST:PORT", "[ADDRESS]:PORT" or ":PORT".
[[nodiscard]] std::optional<Node> parse_node(std::string_view text);
// Nothing unless it is such a place, with a host.
[[nodiscard]] std::optional<Place> parse_place(std::string_view text);
// How many characters of `text`, which begins with the scheme, belong to the place in a list whose
// entries are separated by colons.
[[nodiscard]] std::size_t length_in_list(std::string_view text);

}  // namespace shima::remote
