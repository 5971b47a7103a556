// From a member's own error to that of all, and back into words.
#pragma once

#include <string_view>

#include "collective/channel.h"

namespace shima {

// What a member brings to a meeting.
[[nodiscard]] Outcome outcome_of(const Channel& channel, const Status& mine);

// What a meeting's outcome is to this member: in its own words if its error is the one that all
// return. "writing /a/b: rank 3 failed".
[[nodiscard]] Status settled(const Channel& channel, const Outcome& all, const Status& mine,
                             std::string_view doing, std::string_view object = {});

// All members' worst. Collective.
[[nodiscard]] Status agree_on(Channel& channel, const Status& mine, std::string_view doing,
                              std::string_view object = {}) noexcept;

}  // namespace shima
