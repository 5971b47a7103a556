#include "group/agreement.h"

#include <fmt/format.h>

namespace shima {

Outcome outcome_of(const Channel& channel, const Status& mine) {
  Outcome outcome{.rank = channel.rank()};
  if (!mine) {
    outcome.code = mine.error().code;
    outcome.sys_errno = mine.error().sys_errno;
  }
  return outcome;
}

Status settled(const Channel& channel, const Outcome& all, const Status& mine,
               std::string_view doing, std::string_view object) {
  if (all.code == Code::ok) return {};
  if (!mine && mine.error().code == all.code) return mine;
  return fail_settled(all.code, all.sys_errno, [&] {
    return fmt::format("{}{}{}: {} {} failed", doing, object.empty() ? "" : " ", object,
                       channel.member_word(), all.rank);
  });
}

Status agree_on(Channel& channel, const Status& mine, std::string_view doing,
                std::string_view object) noexcept {
  return settled(channel, channel.agree(outcome_of(channel, mine)), mine, doing, object);
}

}  // namespace shima
