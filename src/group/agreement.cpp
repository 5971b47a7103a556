#include "group/agreement.h"

#include <fmt/format.h>

namespace shima {
namespace {

Outcome outcome_of_status(const Status& status, int rank) {
  Outcome outcome{.rank = rank};
  if (!status) {
    outcome.code = status.error().code;
    outcome.sys_errno = status.error().sys_errno;
  }
  return outcome;
}

}  // namespace

Status agree_on(Channel& channel, const Status& mine, const std::string& doing) {
  const Outcome all = channel.agree(outcome_of_status(mine, channel.rank()));
  if (all.code == Code::ok) return {};
  if (!mine && mine.error().code == all.code) return mine;
  return fail(all.code, fmt::format("{}: {} {} failed", doing, channel.member_word(), all.rank),
              all.sys_errno);
}

}  // namespace shima
