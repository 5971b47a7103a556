#include "dse/plan/hosts_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>

#include "dse/plan/words.h"

namespace shima::dse {
namespace {

constexpr int most_slots = 1 << 20;

// A launcher could take it for an option, and a shell for more than a word.
bool is_host_name(std::string_view name) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_' || c == ':' || c == '%' || c == '@';
  };
  return !name.starts_with('-') && name.size() <= 255 && std::ranges::all_of(name, is_plain);
}

}  // namespace

Result<std::vector<Host>> parse_hosts(std::string_view text, std::string_view source) {
  constexpr std::string_view slots_word = "slots=";
  std::vector<Host> hosts;
  std::map<std::string_view, int> line_of;
  int line_number = 0;
  for (const std::string_view line : parts_of(text, "\n")) {
    ++line_number;
    const auto bad = [&](std::string_view rule) {
      return fail(Code::bad_argument, fmt::format("{}, line {}: {}", source, line_number, rule));
    };
    const auto words = words_of(line.substr(0, line.find('#')));
    if (words.empty()) continue;
    const std::string_view name = words.front();
    if (!is_host_name(name))
      return bad(fmt::format("'{}' is not the name of a host; write HOST [slots=N]", name));
    Host host{std::string(name), 0};
    for (const std::string_view word : std::span(words).subspan(1)) {
      const auto slots = word.starts_with(slots_word) ? parse_number(word.substr(slots_word.size()))
                                                      : std::nullopt;
      if (!slots || *slots < 1 || *slots > most_slots || host.slots != 0)
        return bad(fmt::format("'{}' after the host is not slots=N, with N of 1 or more", word));
      host.slots = *slots;
    }
    const auto [known, is_new] = line_of.emplace(name, line_number);
    if (!is_new)
      return bad(
          fmt::format("host {} is in line {} already; add its slots there", name, known->second));
    hosts.push_back(std::move(host));
  }
  if (hosts.empty())
    return fail(Code::bad_argument,
                fmt::format("{} has no hosts; write a line HOST [slots=N] for each", source));
  return hosts;
}

}  // namespace shima::dse
