// Agents reach into the members' memory (process_vm_*): the members only wait.
//
// Two agents of one node take turns by themselves: while one writes its window under the inode's
// lock, the other gathers its next.
#include "base/clock.h"
#include "base/fault_point.h"
#include "collective/job.h"
#include "collective/reach_member.h"
#include "collective/walk.h"
#include "collective/window_io.h"
#include "reach/staging_pool.h"

namespace shima {
namespace {

class Puller {
 public:
  Puller(Job& job, std::byte* data) : job_(job), io_(job), data_(data) {}

  // Returns where the file ended, or the window's end.
  Result<FileOffset> move(FileRange window, DomainWalk& walk) {
    const std::vector<MemberWalk*> members = walk.members_in(window);
    io_.begin(window);
    for (const MemberWalk* member : members)
      member->look_below(window.end, [&](const Strip& s) { io_.mark(s); });
    return job_.operation == Operation::write ? write(window, members) : read(window, members);
  }

 private:
  Result<FileOffset> write(FileRange window, std::span<MemberWalk* const> members) {
    SHIMA_TRY(reach(members, window.end, Direction::read));
    SHIMA_TRY(io_.write_marked(data_));
    return window.end;
  }

  Result<FileOffset> read(FileRange window, std::span<MemberWalk* const> members) {
    SHIMA_TRY_ASSIGN(const FileOffset end, io_.read_marked(data_));
    SHIMA_TRY(reach(members, std::min(end, window.end), Direction::write));
    return end;
  }

  Status reach(std::span<MemberWalk* const> members, FileOffset end, Direction direction) {
    const Span span(job_.counters.gather_ns);
    for (MemberWalk* member : members) {
      fault_point(FaultPhase::gather);
      SHIMA_TRY(reach_member(job_, *member, end, direction, {data_, io_.window().begin}));
    }
    return {};
  }

  Job& job_;
  WindowIo io_;
  std::byte* data_;
};

}  // namespace

Result<FileOffset> run_pull(Job& job) {
  ++job.counters.path_pull;
  const FileRange* domain = job.my_domain();
  if (domain == nullptr) return no_end_of_file;
  SHIMA_TRY_ASSIGN(const Staging staging,
                   Staging::borrow(job.channel.staging(), job.plan.window_bytes));
  Puller puller(job, staging.data());
  DomainWalk walk(job.posts, job.plan, *domain);
  while (const auto window = walk.next_window()) {
    SHIMA_TRY_ASSIGN(const FileOffset end, puller.move(*window, walk));
    if (end < window->end) return end;  // only the end of the file stops a window short
  }
  return no_end_of_file;
}

}  // namespace shima
