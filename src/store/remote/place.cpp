#include "store/remote/place.h"

#include <algorithm>

namespace shima::remote {

std::optional<Node> parse_node(std::string_view text) {
  const bool is_bracketed = text.starts_with('[');
  const std::size_t colon = is_bracketed ? text.find("]:") + 1 : text.rfind(':');
  if (colon == 0 && is_bracketed) return {};
  if (colon == std::string_view::npos) return {};
  const std::string_view port = text.substr(colon + 1);
  std::string_view host = text.substr(0, colon);
  if (is_bracketed) host = host.substr(1, host.size() - 2);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (port.empty() || port.size() > 5 || !std::ranges::all_of(port, is_digit)) return {};
  if (!is_bracketed && host.find(':') != std::string_view::npos) return {};
  return Node{std::string(host), std::string(port)};
}

std::optional<Place> parse_place(std::string_view text) {
  if (!text.starts_with(scheme)) return {};
  text.remove_prefix(scheme.size());
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return {};
  const auto node = parse_node(text.substr(0, slash));
  const std::string_view target = text.substr(slash + 1);
  if (!node || node->host.empty() || target.empty() || target.find('/') != std::string_view::npos)
    return {};
  return Place{*node, std::string(target)};
}

std::size_t length_in_list(std::string_view text) {
  const std::size_t slash = text.find('/', scheme.size());
  return std::min(text.find(':', slash), text.size());
}

}  // namespace shima::remote
