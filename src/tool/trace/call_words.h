// Words for what an event has as a number.
#pragma once

#include <array>
#include <string_view>

#include "collective/plan/chooser.h"
#include "observe/call.h"

namespace shima::tool {

// Empty if the call had none.
[[nodiscard]] inline std::string_view strategy_word(std::uint8_t strategy) {
  constexpr std::array<std::string_view, strategy_count> words{
      "disk_directed", "two_phase", "subgroup", "independent", "io_node"};
  return strategy < words.size() ? words[strategy] : std::string_view();
}

[[nodiscard]] inline std::string_view reason_word(std::uint8_t reason) {
  const auto rows = reason_rows();
  return reason < rows.size() ? rows[reason].name : std::string_view();
}

[[nodiscard]] inline std::string_view category_of(CallCode code) {
  if (call::is_data(code)) return call::is_write(code) ? "write" : "read";
  if (call::sends(code)) return "send";
  if (call::fetches(code)) return "fetch";
  if (call::is_memory(code)) return "update";
  if (call::is_wait(code)) return "wait";
  return call::is_of_lapi(code) || call::is_of_dsm(code) ? "job" : "file";
}

}  // namespace shima::tool
