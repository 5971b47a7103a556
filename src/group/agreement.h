// Combines the members' own errors into one error of all members, and composes its message.
#pragma once

#include <string_view>

#include "group/channel.h"

namespace shima {

// The outcome that a member contributes.
[[nodiscard]] Outcome outcome_of(const Channel& channel, const Status& mine);

// The common outcome as this member's Status. The member whose error all return keeps its own
// message; the others get "writing /a/b: rank 3 failed".
[[nodiscard]] Status settled(const Channel& channel, const Outcome& all, const Status& mine,
                             std::string_view doing, std::string_view object = {});

// The worst outcome of all members. Collective.
[[nodiscard]] Status agree_on(Channel& channel, const Status& mine, std::string_view doing,
                              std::string_view object = {}) noexcept;

}  // namespace shima
