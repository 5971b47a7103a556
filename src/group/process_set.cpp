#include "group/process_set.h"

#include "group/agreement.h"

namespace shima {

// What needs memory comes before the call of the roll, which tells the others of a failure, or is
// the channel, in whose first meeting they hear of it.
Result<std::unique_ptr<ProcessSet>> ProcessSet::meet(const RollCall& call) {
  std::shared_ptr<NodeGround> ground;
  std::unique_ptr<ProcessSet> set;
  RollCall calling = call;
  const Status prepared = caught([&]() -> Status {
    ground = std::make_shared<NodeGround>();
    ground->member_word = "member";
    ground->staging = std::make_shared<StagingPool>();
    ground->near_pids.assign(call.pids.begin(), call.pids.end());
    ground->topology = Topology(std::vector<Member>(call.pids.size()));
    const std::weak_ptr<NodeGround> alive = ground;
    ground->hooks = {.progress = {}, .peers = [alive]() -> Status {
                       const auto shared = alive.lock();
                       return shared ? shared->segment->check_peers() : Status{};
                     }};
    set.reset(new ProcessSet(ground));
    return {};
  });
  if (calling.ready) calling.ready = prepared;
  SHIMA_TRY_ASSIGN(ground->segment, call_roll(calling));
  const NodeSegment& segment = *ground->segment;
  ground->one_space = segment.one_space();
  ground->topology.set_cores(segment.usable_cores());
  ground->hooks.may_spin = segment.member_count() <= segment.usable_cores();
  SHIMA_TRY_ASSIGN(set->own_, set->make_channel());
  SHIMA_TRY(agree_on(*set->own_, Status{}, "meeting the processes of a set"));
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
