// Agents access the members' memory (process_vm_*); the members only wait.
//
// Two agents of one node alternate without coordination: while one writes its window under the
// inode's lock, the other gathers its next.
#include "base/clock.h"
#include "base/fault_point.h"
#include "collective/window/path_context.h"
#include "collective/window/reach_member.h"
#include "collective/window/walk.h"
#include "collective/window/window_io.h"
#include "ipc/staging_pool.h"

namespace shima {
namespace {

class Puller {
 public:
  Puller(PathContext& context, std::byte* data) : context_(context), io_(context), data_(data) {}

  Status move(const Window& window, DomainWalk& walk) {
    const std::vector<MemberWalk*> members = walk.members_in(window);
    io_.begin(window);
    io_.mark(members);
    return context_.direction == Direction::write ? write(members) : read(members, walk);
  }
  [[nodiscard]] FileOffset end_of_file() const { return io_.end_of_file(); }

 private:
  Status write(std::span<MemberWalk* const> members) {
    SHIMA_TRY(reach(members, io_.window().range.end, Direction::read));
    return io_.write_marked(data_);
  }

  Status read(std::span<MemberWalk* const> members, DomainWalk& walk) {
    const TargetOffset window_end = io_.window().range.end;
    SHIMA_TRY_ASSIGN(const TargetOffset end, io_.read_marked(data_));
    SHIMA_TRY(reach(members, std::min(end, window_end), Direction::write));
    if (end >= window_end) return {};
    for (MemberWalk* member : members) member->skip_below(window_end);
    walk.stop_at(io_.end_of_file());
    return {};
  }

  Status reach(std::span<MemberWalk* const> members, TargetOffset end, Direction direction) {
    const ScopedTimer timer(context_.counters.gather_ns);
    for (MemberWalk* member : members) {
      fault_point(FaultPhase::gather);
      SHIMA_TRY(reach_member(context_, *member, end, direction, {data_, io_.window().range.begin}));
    }
    return {};
  }

  PathContext& context_;
  WindowIo io_;
  std::byte* data_;
};

}  // namespace

Result<FileOffset> run_pull(PathContext& context) {
  ++context.counters.path_pull;
  std::vector<Domain> domains = context.my_domains();
  if (domains.empty()) return no_end_of_file;
  SHIMA_TRY_ASSIGN(context.staging.agent,
                   Staging::borrow(context.channel.staging(), context.plan.window_bytes));
  Puller puller(context, context.staging.agent.data());
  DomainWalk walk(context.near, context.file.layout(), context.plan.window_bytes,
                  std::move(domains));
  while (const auto window = walk.next_window()) {
    context.staging.agent.count(window->range.len_bytes());
    SHIMA_TRY(puller.move(*window, walk));
  }
  return puller.end_of_file();
}

}  // namespace shima
