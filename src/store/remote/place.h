// Where targets and files on other machines are: "iod://HOST:PORT/NAME", as lists of targets have
// it, and "iod://HOST:PORT/NAME/path" for a file in a directory of that name.
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

struct FarPath {
  Node node;
  std::string directory;  // its name at the node
  std::string path;       // in it; "" for the directory itself
};

// "HOST:PORT", "[ADDRESS]:PORT" or ":PORT".
[[nodiscard]] std::optional<Node> parse_node(std::string_view text);
// Nothing unless it is such a place, with a host.
[[nodiscard]] std::optional<Place> parse_place(std::string_view text);
[[nodiscard]] std::optional<FarPath> parse_far_path(std::string_view text);
// The length of the first entry of a list whose entries are separated by colons: "PLACE" or
// "NAME=PLACE". The colons of a place on an I/O node separate nothing.
[[nodiscard]] std::size_t first_entry(std::string_view text);

}  // namespace shima::remote
