// An agent's walk through its domains: window by window, over holes, with the members' pieces in
// each.
//
// Windows are aligned to a grid of each subfile (multiples of the window size). They are visited in
// grid order, alternating between the agent's domains, so that an agent and a member compute the
// same windows in the same order without communication, and an agent of several subfiles keeps all
// their disks busy. Each member whose bytes touch a domain has a cursor there and one in its
// memory; both only move forward. Pure.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "collective/plan/post.h"
#include "layout/subfile_cursor.h"
#include "pattern/copy.h"
#include "pattern/cursor.h"

namespace shima {

// Consecutive bytes of a subfile that an agent handles at once.
struct Window {
  int domain = 0;  // index among the agent's
  int subfile = 0;
  TargetRange range;
};

// One member's walk through a domain.
class MemberWalk {
 public:
  MemberWalk(int index, const Post& post, const Layout& layout, const Domain& domain);

  // The member's index on its node.
  [[nodiscard]] int index() const { return index_; }
  // The position in the member's data.
  [[nodiscard]] std::uint64_t byte() const { return file_.byte(); }
  // The offset of the member's next byte in the domain; the domain's end if there is none.
  [[nodiscard]] TargetOffset next() const { return file_.next(); }
  // Whether the member has bytes below `end` that the walk has not passed.
  [[nodiscard]] bool has_below(TargetOffset end) const { return next() < end; }
  // The number of bytes from here up to `end`.
  [[nodiscard]] std::uint64_t bytes_below(TargetOffset end) const { return file_.bytes_below(end); }

  // Calls visit(Strip) for the pieces below `end` in the subfile, without moving.
  template <class Visit>
  void look_below(TargetOffset end, Visit visit) const {
    SubfileCursor ahead = file_;
    ahead.for_each_strip_below(end, visit);
  }

  // Calls visit(StripPair{file side a, memory side b}) for the pieces below `end`, and moves past
  // them. A visit returns a Status; the first error ends the walk.
  template <class Visit>
  [[nodiscard]] Status walk_below(TargetOffset end, Visit visit) {
    return file_.match_below(end, memory_, visit);
  }
  // Moves past all bytes below `end`.
  void skip_below(TargetOffset end) { file_.skip_below(end); }

 private:
  int index_;
  SubfileCursor file_;
  Cursor memory_;
};

// One member's walk through all domains of an agent.
class AgentWalk {
 public:
  AgentWalk(int index, const Post& post, const Layout& layout, std::vector<Domain> domains);

  // The next window with bytes of the member, or nothing.
  [[nodiscard]] std::optional<Window> next_window(std::uint64_t window_bytes) const;
  // Whether the member has no bytes left in any domain.
  [[nodiscard]] bool has_ended() const;
  // The walk in the domain of a subfile; null if there is none.
  [[nodiscard]] MemberWalk* of_subfile(int subfile);
  [[nodiscard]] MemberWalk& in(int domain) { return walks_[static_cast<std::size_t>(domain)]; }

 private:
  std::vector<Domain> domains_;
  std::vector<MemberWalk> walks_;  // one per domain
};

class DomainWalk {
 public:
  DomainWalk(std::span<const NearPost> posts, const Layout& layout, std::uint64_t window_bytes,
             std::vector<Domain> domains);

  // The next window with bytes, or nothing. All members must have walked past the previous one.
  [[nodiscard]] std::optional<Window> next_window() const;
  // Skips all windows at or beyond the end of the file.
  void stop_at(FileOffset end_of_file);
  // Members with bytes in `window`; moves all past the bytes before it.
  [[nodiscard]] std::vector<MemberWalk*> members_in(const Window& window);

 private:
  const Layout* layout_;
  std::uint64_t window_bytes_;
  std::vector<Domain> domains_;
  std::vector<std::vector<MemberWalk>> members_;  // by domain
};

// The window of the grid that contains `offset`, cut to the domain.
[[nodiscard]] TargetRange window_at(TargetOffset offset, std::uint64_t window_bytes,
                                    TargetRange domain);

}  // namespace shima
