#include "group/process_set.h"

namespace shima {

Result<std::unique_ptr<ProcessSet>> ProcessSet::meet(const RollCall& call) {
  auto ground = std::make_shared<NodeGround>();
  SHIMA_TRY_ASSIGN(ground->segment, call_roll(call));
  const NodeSegment& segment = *ground->segment;
  ground->member_word = "member";
  ground->one_space = segment.one_space();
  ground->staging = std::make_shared<StagingPool>();
  for (const pid_t pid : call.pids)
    ground->members.push_back({.node = 0, .pid = pid, .cores = segment.usable_cores()});
  const std::weak_ptr<NodeSegment> alive = ground->segment;
  ground->hooks = {.progress = {},
                   .peers = [alive]() -> Status {
                     const auto shared = alive.lock();
                     return shared ? shared->check_peers() : Status{};
                   },
                   .may_spin = segment.member_count() <= segment.usable_cores()};
  std::unique_ptr<ProcessSet> set(new ProcessSet(std::move(ground)));
  SHIMA_TRY_ASSIGN(set->own_, set->make_channel());
  return set;
}

Result<std::unique_ptr<Channel>> ProcessSet::make_channel() {
  SHIMA_TRY_ASSIGN(auto channel, NodeChannel::make(ground_, ++channels_));
  return std::unique_ptr<Channel>(std::move(channel));
}

Status ProcessSet::barrier() {
  const Outcome all = own_->agree({.rank = index()});
  if (all.code == Code::ok) return {};
  return fail(all.code, "meeting the members of a set: the process of one has exited",
              all.sys_errno);
}

}  // namespace shima
