// The hints of an open file: all members use those of the first. With different hints members would
// choose different methods and lose each other's data.
//
// Members join summaries of their hints' texts in a meeting that they need anyway. Only if the
// texts differ, that of the first member follows, in pieces as long as the values that members
// join.
#pragma once

#include <string>
#include <string_view>

#include "file/hints/hints.h"
#include "group/combine_values.h"

namespace shima {

struct HintsSummary {
  Extremes hashes;
  std::uint64_t first_len_bytes = 0;
};

[[nodiscard]] constexpr HintsSummary join(const HintsSummary& a, const HintsSummary& b) {
  return {join(a.hashes, b.hashes), a.first_len_bytes | b.first_len_bytes};
}

// Of this member's text, from encode_hints.
[[nodiscard]] HintsSummary summary_of(const Channel& channel, std::string_view text);

// The hints of the first member, from the joined summary and this member's text. Collective; an
// error may be this member's alone.
[[nodiscard]] Result<Hints> first_hints(Channel& channel, const HintsSummary& all,
                                        std::string_view text);

}  // namespace shima
