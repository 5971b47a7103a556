#include "file/hints/hint_sources.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "base/file_text.h"
#include "base/log.h"

namespace shima {
namespace {

constexpr std::string_view blanks = " \t\r\n";

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

// Calls visit with each part of `text` between separators.
template <class Visit>
void for_each_part(std::string_view text, char separator, Visit visit) {
  while (!text.empty()) {
    const std::size_t end = text.find(separator);
    visit(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

std::optional<HintSetting> parse_setting(std::string_view part, std::string_view separators) {
  const std::string_view text = trim(part);
  if (text.empty()) return std::nullopt;
  const std::size_t end = text.find_first_of(separators);
  const std::string_view value =
      end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  return HintSetting{trim(text.substr(0, end)), trim(value)};
}

std::vector<HintSetting> read_environment() {
  std::vector<HintSetting> settings;
  if (const char* path = std::getenv("ROMIO_HINTS"); path != nullptr) {
    if (const auto text = file_text(path)) {
      settings = parse_hint_file(*text);
    } else {
      log(LogLevel::warn, "ROMIO_HINTS={}: cannot be read; its hints are ignored: {}", path,
          describe(text.error()));
    }
  }
  if (const char* list = std::getenv("SHIMA_HINTS"); list != nullptr) {
    for (HintSetting& setting : parse_hint_list(list)) settings.push_back(std::move(setting));
  }
  return settings;
}

void apply_each(Hints& hints, std::span<const HintSetting> settings, std::string_view source) {
  for (const auto& [key, value] : settings) {
    const Result<bool> known = apply(hints, key, value);
    if (!known) {
      log(LogLevel::warn, "{}; ignored (from {})", known.error().what, source);
    } else if (!*known) {
      log(LogLevel::info, "hint {}={} is not one of Shima's; ignored (from {})", key, value,
          source);
    }
  }
}

}  // namespace

std::vector<HintSetting> parse_hint_list(std::string_view text) {
  std::vector<HintSetting> settings;
  for_each_part(text, ';', [&](std::string_view part) {
    if (auto setting = parse_setting(part, "=")) settings.push_back(*std::move(setting));
  });
  return settings;
}

std::vector<HintSetting> parse_hint_file(std::string_view text) {
  std::vector<HintSetting> settings;
  for_each_part(text, '\n', [&](std::string_view line) {
    auto setting = parse_setting(line.substr(0, line.find('#')), blanks);
    if (setting &&
        std::ranges::find(settings, setting->first, &HintSetting::first) == settings.end()) {
      settings.push_back(*std::move(setting));
    }
  });
  return settings;
}

const std::vector<HintSetting>& environment_hints() {
  static const std::vector<HintSetting> settings = read_environment();
  return settings;
}

Hints resolve(const Hints& base, std::span<const HintSetting> program,
              std::span<const HintSetting> stronger) {
  Hints hints = base;
  apply_each(hints, program, "the program's info");
  apply_each(hints, stronger, "the environment");
  return hints;
}

}  // namespace shima
