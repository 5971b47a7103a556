#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

namespace shima {
namespace {

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warn:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

std::optional<spdlog::level::level_enum> level_named(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto level = spdlog::level::from_str(text);  // "off" also for unknown words
  if (level == spdlog::level::off && text != "off") return {};
  return level;
}

// Created at first use and never destroyed: lines may be logged while the process exits.
spdlog::logger& logger() {
  static auto* instance = [] {
    auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    auto* made = new spdlog::logger("shima", std::move(sink));
    const char* wanted = std::getenv("SHIMA_LOG");
    const auto level = level_named(wanted == nullptr ? "" : wanted);
    made->set_level(level.value_or(spdlog::level::warn));
    made->set_pattern("shima: %l: %v");
    if (wanted != nullptr && *wanted != '\0' && !level)
      made->warn("SHIMA_LOG={}: not error, warn, info or debug; warn is used", wanted);
    return made;
  }();
  return *instance;
}

}  // namespace

bool log_enabled(LogLevel level) { return logger().should_log(spdlog_level(level)); }

void log_line(LogLevel level, std::string_view text) {
  logger().log(spdlog_level(level), spdlog::string_view_t(text.data(), text.size()));
}

void log_set_rank(int rank) { logger().set_pattern("shima[" + std::to_string(rank) + "]: %l: %v"); }

}  // namespace shima
