// A collective transfer from end to end: exchange, plan, move, agree.
//
// It has two halves, because the plan may be that each member does its own I/O, which is the
// caller's: start() exchanges the posts and plans; finish() moves the bytes, or takes the outcome
// of the caller's own I/O, and agrees.
#pragma once

#include <optional>
#include <vector>

#include "collective/path_context.h"

namespace shima {

struct CollectiveCall {
  Direction direction;
  Channel& channel;
  LogicalFile& file;
  Counters& counters;
  const Tuning& tuning;
  bool caches_apart;  // members do not see at once what other nodes write (see Subfile::publish)
};

struct CollectiveResult {
  std::uint64_t len_bytes = 0;    // data bytes moved
  std::uint64_t more_rounds = 0;  // the most that any member announced; the same on all
};

class CollectiveTransfer {
 public:
  explicit CollectiveTransfer(const CollectiveCall& call) : call_(call) {}

  // Exchanges the members' posts. Collective. An error is the same on all members and ends the
  // transfer; an error in place of a post makes every member fail with that code before any byte is
  // moved.
  [[nodiscard]] Status start(const Result<Post>& mine);
  // After start(): whether this member must do its own I/O before finish().
  [[nodiscard]] bool is_own_io() const;
  // Moves this member's bytes together with all others'; `own`: the outcome of its own I/O, if it
  // did any. Collective; every member returns the same code.
  [[nodiscard]] Result<CollectiveResult> finish(const Result<std::uint64_t>& own);

 private:
  // The state that every member has after the exchange of posts.
  struct Prepared {
    std::vector<Post> posts;
    Plan plan;
  };
  // The outcome of this member's part, before all agree.
  struct Part {
    Status status;
    FileOffset end_of_file = no_end_of_file;
  };

  [[nodiscard]] Result<Messages> exchange_posts(const Result<Post>& mine);
  [[nodiscard]] Result<Prepared> prepare(Messages messages);
  [[nodiscard]] Plan plan_for(std::span<const Post> posts);
  [[nodiscard]] Status publish_before();
  [[nodiscard]] Status move_shared(Staging& staging, Part& part);
  [[nodiscard]] Status agree(Part& part);
  [[nodiscard]] bool is_shared() const {
    return prepared_ && prepared_->plan.path != Path::independent;
  }

  const CollectiveCall& call_;
  Result<Prepared> prepared_;  // an error is this member's own
};

}  // namespace shima
