#include "base/process/host_list.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

namespace shima {
namespace {

// The length of the first entry: up to a comma outside of brackets.
std::size_t entry_length(std::string_view list) {
  bool inside = false;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] == '[') inside = true;
    if (list[i] == ']') inside = false;
    if (list[i] == ',' && !inside) return i;
  }
  return list.size();
}

bool is_host_name(std::string_view name) {
  constexpr std::size_t longest = 253;
  return !name.empty() && name.size() <= longest && name.front() != '-' &&
         std::ranges::all_of(name, [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' ||
                  c == '_' || c == ':';
         });
}

std::optional<unsigned> number_in(std::string_view text) {
  unsigned number = 0;
  constexpr std::size_t most_digits = 9;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = parsed.ec == std::errc{} && parsed.ptr == text.data() + text.size();
  return whole && text.size() <= most_digits ? std::optional(number) : std::nullopt;
}

class Expansion {
 public:
  explicit Expansion(std::size_t most) : most_(most) {}

  // False at the end, for whatever reason. `entry` may have several ranges: "rack[1-2]n[1-4]".
  bool add(const std::string& before, std::string_view entry) {
    const std::size_t open = entry.find('[');
    if (open == std::string_view::npos) return add_name(before + std::string(entry));
    const std::size_t close = entry.find(']', open);
    if (close == std::string_view::npos) return false;
    std::string_view ranges = entry.substr(open + 1, close - open - 1);
    if (ranges.empty()) return false;
    const std::string start = before + std::string(entry.substr(0, open));
    while (!ranges.empty()) {
      const std::string_view range = ranges.substr(0, ranges.find(','));
      if (!add_range(start, range, entry.substr(close + 1))) return false;
      ranges.remove_prefix(std::min(range.size() + 1, ranges.size()));
    }
    return true;
  }

  std::vector<std::string> names;

 private:
  // "08-10" or "12".
  bool add_range(const std::string& start, std::string_view range, std::string_view rest) {
    const std::size_t dash = std::min(range.find('-'), range.size());
    const std::string_view low = range.substr(0, dash);
    const auto first = number_in(low);
    const auto last = dash < range.size() ? number_in(range.substr(dash + 1)) : first;
    if (!first || !last || *last < *first) return false;
    for (unsigned number = *first; number <= *last; ++number) {
      if (!may_try()) return false;
      std::string digits = std::to_string(number);
      if (digits.size() < low.size()) digits.insert(0, low.size() - digits.size(), '0');
      if (!add(start + digits, rest)) return false;
    }
    return true;
  }

  bool add_name(std::string name) {
    if (!may_try() || names.size() == most_ || !is_host_name(name)) return false;
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
    return true;
  }

  // Numbers and names that lead to no further name end the list, too.
  bool may_try() { return tried_++ < 64 * (most_ + 16); }

  std::size_t most_;
  std::size_t tried_ = 0;
};

}  // namespace

std::vector<std::string> expand_hosts(std::string_view list, std::size_t most) {
  Expansion all(most);
  while (!list.empty()) {
    const std::string_view entry = list.substr(0, entry_length(list));
    if (!all.add({}, entry)) break;
    list.remove_prefix(std::min(entry.size() + 1, list.size()));
  }
  return all.names;
}

std::string_view first_hosts(std::string_view list, std::size_t most_bytes) {
  if (list.size() <= most_bytes) return list;
  std::size_t end = 0;
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t next = begin + entry_length(list.substr(begin));
    if (next > most_bytes) break;
    end = next;
    begin = next + 1;
  }
  return list.substr(0, end);
}

bool are_same_host(std::string_view one, std::string_view other) {
  const auto short_of = [](std::string_view name) { return name.substr(0, name.find('.')); };
  const bool have_domains = one.contains('.') && other.contains('.');
  return have_domains ? one == other : short_of(one) == short_of(other);
}

}  // namespace shima
