#include "group/process_set.h"

#include "group/agreement.h"

namespace shima {
namespace {

class OneNodeSet final : public ProcessSet {
 public:
  explicit OneNodeSet(std::shared_ptr<const NodeGround> ground) : ground_(std::move(ground)) {}

  Status begin() {
    SHIMA_TRY_ASSIGN(own_, make_channel());
    return agree_on(*own_, Status{}, "meeting the processes of a set");
  }

  int index() const override { return ground_->segment->index(); }
  int size() const override { return ground_->segment->member_count(); }
  Result<std::unique_ptr<Channel>> make_channel() override {
    SHIMA_TRY_ASSIGN(auto channel, NodeChannel::make(ground_, ++channels_));
    return std::unique_ptr<Channel>(std::move(channel));
  }
  Status barrier() override { return meet_in(*own_); }

 private:
  std::shared_ptr<const NodeGround> ground_;
  std::uint64_t channels_ = 0;
  std::unique_ptr<Channel> own_;
};

}  // namespace

std::shared_ptr<NodeGround> ground_for(std::span<const pid_t> pids) {
  auto ground = std::make_shared<NodeGround>();
  ground->member_word = "member";
  ground->staging = std::make_shared<StagingPool>();
  ground->near_pids.assign(pids.begin(), pids.end());
  ground->topology = Topology(std::vector<Member>(pids.size()));
  const std::weak_ptr<NodeGround> alive = ground;
  ground->hooks = {.progress = {}, .peers = [alive]() -> Status {
                     const auto shared = alive.lock();
                     return shared ? shared->segment->check_peers() : Status{};
                   }};
  return ground;
}

void take_segment(NodeGround& ground, std::shared_ptr<NodeSegment> segment) {
  ground.segment = std::move(segment);
  ground.one_space = ground.segment->one_space();
  ground.topology.set_cores(ground.segment->usable_cores());
  ground.hooks.tasks_per_core =
      tasks_per_core(ground.segment->member_count(), ground.segment->usable_cores());
  ground.hooks.one_group = ground.segment->one_group();
}

Status meet_in(Channel& channel) {
  const Outcome all = channel.agree({.rank = channel.rank()});
  if (all.code == Code::ok) return {};
  return fail(all.code, "meeting the members of a set: the process of one has exited",
              all.sys_errno);
}

// What needs memory comes before the call of the roll, which tells the others of a failure, or is
// the channel, in whose first meeting they hear of it.
Result<std::unique_ptr<ProcessSet>> ProcessSet::meet(const RollCall& call) {
  std::shared_ptr<NodeGround> ground;
  std::unique_ptr<OneNodeSet> set;
  RollCall calling = call;
  const Status prepared = caught([&]() -> Status {
    ground = ground_for(call.pids);
    set = std::make_unique<OneNodeSet>(ground);
    return {};
  });
  if (calling.ready) calling.ready = prepared;
  SHIMA_TRY_ASSIGN(auto segment, call_roll(calling));
  take_segment(*ground, std::move(segment));
  SHIMA_TRY(set->begin());
  return set;
}

}  // namespace shima
