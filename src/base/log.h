// One line to stderr, at a level chosen by SHIMA_LOG (error, warn, info, debug; default warn).
//
// Lines are prefixed with the rank once it is known, so that a job's output is readable.
// Thread-safe.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace shima {

enum class LogLevel : int { debug, info, warn, error };

[[nodiscard]] bool log_enabled(LogLevel level);
void log_line(LogLevel level, std::string_view text);

// Names the rank in later lines of this process.
void log_set_rank(int rank);

template <class... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(level)) log_line(level, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace shima
