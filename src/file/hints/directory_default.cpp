#include "file/hints/directory_default.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/log.h"
#include "store/target/paths.h"

namespace shima {
namespace {

constexpr std::array<std::string_view, 5> striping_keys{
    "striping_unit", "striping_factor", "start_iodevice", "shima_targets", "shima_regions"};

constexpr std::string_view blanks = " \t\r";
constexpr std::size_t largest_default_bytes = 65536;

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) + 1 - first);
}

Status take_line(Hints& hints, std::string_view line) {
  const std::size_t equals = line.find('=');
  const std::string_view key = trim(line.substr(0, equals));
  if (equals == std::string_view::npos ||
      std::ranges::find(striping_keys, key) == striping_keys.end())
    return fail(Code::bad_argument, fmt::format("line \"{}\" must be KEY=VALUE, where KEY is {}",
                                                line, fmt::join(striping_keys, ", ")));
  SHIMA_TRY(apply(hints, key, trim(line.substr(equals + 1))));
  return {};
}

template <class Field>
void fill(Hints& hints, const Hints& with, Field Hints::* field) {
  if (hints.*field == Hints{}.*field) hints.*field = with.*field;
}

}  // namespace

Result<Hints> parse_directory_default(std::string_view text) {
  Hints hints;
  while (!text.empty()) {
    const std::string_view whole = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(whole.size() + 1, text.size()));
    const std::string_view line = trim(whole.substr(0, whole.find('#')));
    if (!line.empty()) SHIMA_TRY(take_line(hints, line));
  }
  return hints;
}

std::string encode_directory_default(const Hints& hints) {
  std::string text = "# How Shima stripes new files in this directory (docs/hints.md).\n";
  for (const auto& [key, value] : effective(hints))
    if (std::ranges::find(striping_keys, key) != striping_keys.end())
      text += fmt::format("{}={}\n", key, value);
  return text;
}

Hints with_directory_default(Hints hints, const std::string& path) {
  const std::string name =
      (std::filesystem::path(path).parent_path() / directory_default_name).string();
  const auto text = tree_at(name).read_text(name, largest_default_bytes);
  if (!text) return hints;
  const auto found = parse_directory_default(*text);
  if (!found) {
    log(LogLevel::warn, "{}: {}; ignored", name, found.error().what);
    return hints;
  }
  fill(hints, *found, &Hints::striping_unit);
  fill(hints, *found, &Hints::striping_factor);
  fill(hints, *found, &Hints::start_iodevice);
  fill(hints, *found, &Hints::shima_targets);
  fill(hints, *found, &Hints::shima_regions);
  return hints;
}

}  // namespace shima
