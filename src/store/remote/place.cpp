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

std::optional<FarPath> parse_far_path(std::string_view text) {
  const std::size_t slash = text.find('/', scheme.size());
  const std::size_t end = slash == std::string_view::npos ? slash : text.find('/', slash + 1);
  auto place = parse_place(text.substr(0, end));
  if (!place) return {};
  std::string_view path = end == std::string_view::npos ? std::string_view() : text.substr(end);
  path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
  path = path.substr(0, path.find_last_not_of('/') + 1);
  return FarPath{std::move(place->node), std::move(place->target), std::string(path)};
}

std::size_t first_entry(std::string_view text) {
  const std::size_t begin = text.find(scheme);
  const std::size_t colon = std::min(text.find(':'), text.size());
  const bool is_remote =
      begin == 0 || (begin < colon && text[begin - 1] == '=' && text.find('=') == begin - 1);
  if (!is_remote) return colon;
  const std::size_t slash = text.find('/', begin + scheme.size());
  return std::min(text.find(':', slash), text.size());
}

}  // namespace shima::remote
