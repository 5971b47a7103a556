// A collective transfer from end to end: join digests, plan, move, agree.
//
// It has two halves, because the plan may be that each member does its own I/O, which is the
// caller's: start() joins the digests and plans; finish() moves the bytes, or takes the outcome
// of the caller's own I/O, and agrees.
#pragma once

#include <optional>
#include <vector>

#include "base/clock.h"
#include "collective/plan/post_message.h"
#include "collective/plan/subgroups.h"
#include "collective/window/path_context.h"
#include "group/caches.h"

namespace shima {

// What a file keeps between its transfers: descriptions that need not be sent or read again.
struct KnownPosts {
  PostWriter mine;
  PostReader near;
};

struct CollectiveCall {
  Direction direction;
  Channel& channel;
  LogicalFile& file;
  Counters& counters;
  const Tuning& tuning;
  KnownPosts& posts;
  Caches caches;
  bool has_moved_own;                 // this member has moved its bytes, or leaves them
  std::span<const std::byte> left{};  // its small write, for another member to make (small_write.h)
  Aside& disk;                        // idle
  History& history;                   // of the file
  bool timed = true;                  // measure the time of the phases for the counters
};

// A member's part of a collective call.
struct MemberAccess {
  Post post;
  Digest digest;  // of the post, and what the caller knows in addition
};

struct CollectiveResult {
  std::uint64_t len_bytes = 0;    // data bytes moved
  std::uint64_t more_rounds = 0;  // the most that any member announced; the same on all
  std::uint64_t duration_ns = 0;  // of this member's part, for its next digest
};

class CollectiveTransfer {
 public:
  // The call must live as long.
  explicit CollectiveTransfer(const CollectiveCall& call) : call_(call) {}
  explicit CollectiveTransfer(CollectiveCall&&) = delete;

  // Joins the members' digests. Collective. An error is the same on all members and ends the
  // transfer; an error in place of an access makes every member fail with that code, and no bytes
  // of the transfer are moved but those left on another node. If no member has data, the transfer
  // ends here, and finish() waits for no other member.
  [[nodiscard]] Status start(Result<MemberAccess> mine);
  // After start(): whether this member must do its own I/O before finish().
  [[nodiscard]] bool is_own_io() const;
  // Moves this member's bytes together with all others'; `own`: the outcome of its own I/O, if it
  // did any. Collective; every member returns the same code.
  [[nodiscard]] Result<CollectiveResult> finish(const Result<std::uint64_t>& own);

 private:
  // The state that every member has after the digests are joined.
  struct Prepared {
    Digest digest;  // of all members
    Plan plan;
    std::vector<NearPost> near;  // an agent's: of the near members with bytes in its domains
  };
  // Whose bytes this member may move besides its own: as an agent, those in its domains; as a
  // subgroup master, those of its subgroup.
  struct Served {
    FileRange range;
    Subgroup subgroup;

    [[nodiscard]] bool nothing() const { return range.empty() && subgroup.size() == 0; }
    [[nodiscard]] bool has(int index, const Bounds& bounds) const {
      return subgroup.has(index) ||
             (bounds.lowest < range.end.value && bounds.highest > range.begin.value);
    }
  };
  // The outcome of this member's part, before all agree.
  struct Part {
    Status status;
    FileOffset end_of_file = no_end_of_file;
  };

  [[nodiscard]] Result<Digest> join_digests(const Result<MemberAccess>& mine);
  [[nodiscard]] Status write_left();
  [[nodiscard]] Result<Prepared> prepare(const Digest& digest);
  [[nodiscard]] Plan plan_for(const Digest& digest);
  [[nodiscard]] Served served_in(const Plan& plan);
  [[nodiscard]] Result<std::vector<NearPost>> near_posts(const Plan& plan);
  void count_choice();
  [[nodiscard]] Status publish_before();
  [[nodiscard]] Status move_shared(WindowStaging& staging, Part& part);
  [[nodiscard]] Status agree(Part& part);
  [[nodiscard]] bool is_shared() const { return prepared_ && !prepared_->plan.is_own_io(); }

  [[nodiscard]] Result<CollectiveResult> finish_all(const Result<std::uint64_t>& own);

  const CollectiveCall& call_;
  Clock::time_point begun_;
  Post mine_;
  Result<Prepared> prepared_;  // an error is this member's own
  bool over_ = false;          // no member had bytes to move
};

}  // namespace shima
