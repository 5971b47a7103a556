// Encodes an Outcome as two words, such that the maxima over all members are the common outcome.
#pragma once

#include "group/channel.h"
#include "group/node/node_segment.h"

namespace shima {

constexpr Rendezvous::Maxima words_of(const Outcome& outcome) {
  const auto code = static_cast<std::uint64_t>(outcome.code);
  const auto sys_errno = static_cast<std::uint64_t>(outcome.sys_errno) & 0xffff;
  const auto rank = static_cast<std::uint64_t>(outcome.rank + 1) & 0xffffffff;
  const std::uint64_t worst = outcome.code == Code::ok ? 0 : code << 56 | sys_errno << 40 | rank;
  constexpr std::int64_t last = std::numeric_limits<std::int64_t>::max();
  return {worst, static_cast<std::uint64_t>(last - outcome.end_of_file)};
}

constexpr Outcome outcome_of(const Rendezvous::Maxima& words) {
  constexpr std::int64_t last = std::numeric_limits<std::int64_t>::max();
  return {.code = static_cast<Code>(words.first >> 56),
          .sys_errno = static_cast<int>(words.first >> 40 & 0xffff),
          .rank = static_cast<int>(words.first & 0xffffffff) - 1,
          .end_of_file = last - static_cast<std::int64_t>(words.second)};
}

}  // namespace shima
