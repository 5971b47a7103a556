// The form of the command's error messages.
//
// A user wants to know three things: the object, the rule that it broke, and the remedy. A Failure
// carries the three; main prints them as "shima: <thing>: <rule>; <advice>".
#pragma once

#include <expected>
#include <string>

namespace shima::tool {

struct Failure {
  std::string thing;
  std::string rule;
  std::string advice;
};

template <class T>
using Outcome = std::expected<T, Failure>;

[[nodiscard]] inline std::unexpected<Failure> refuse(std::string thing, std::string rule,
                                                     std::string advice) {
  return std::unexpected(Failure{std::move(thing), std::move(rule), std::move(advice)});
}

// The command's own exit codes; all others are the job's.
inline constexpr int exit_refused = 2;           // nothing was started
inline constexpr int exit_signalled_base = 128;  // + the signal that ended the launcher

}  // namespace shima::tool
