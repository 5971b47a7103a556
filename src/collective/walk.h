// An agent's way through its domain: window by window, over holes, with the members' pieces in
// each.
//
// Windows lie on a grid of the file (multiples of the window size), so that an agent and a member
// name the same window without talking. Each member whose bytes touch the domain has a cursor in
// the file and one in its memory; both only move forward. Pure.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "collective/plan.h"
#include "collective/post.h"
#include "region/copy.h"
#include "region/cursor.h"

namespace shima {

// One member's way through a domain.
class MemberWalk {
 public:
  MemberWalk(int rank, const Post& post, FileRange domain);

  [[nodiscard]] int rank() const { return rank_; }
  // The position in the member's data.
  [[nodiscard]] std::uint64_t byte() const { return file_.byte(); }
  // Where the member's next byte in the domain lies; the domain's end if there is none.
  [[nodiscard]] FileOffset next() const;
  // Whether the member has bytes below `end` that were not walked yet.
  [[nodiscard]] bool has_below(FileOffset end) const { return next() < end; }
  // The number of bytes from here up to `end`.
  [[nodiscard]] std::uint64_t bytes_below(FileOffset end) const;

  // Calls visit(Strip) for the pieces below `end` in the file, without moving.
  template <class Visit>
  void look_below(FileOffset end, Visit visit) const {
    Cursor ahead = file_;
    for_each_strip_below(ahead, std::min(end, domain_.end).value, visit);
  }

  // Calls visit(StripPair{file side a, memory side b}) for the pieces below `end`, and moves past
  // them. A visit returns a Status; the first error ends the walk.
  template <class Visit>
  [[nodiscard]] Status walk_below(FileOffset end, Visit visit) {
    const std::int64_t limit = std::min(end, domain_.end).value;
    if (memory_.byte() != file_.byte()) memory_.seek_byte(file_.byte());
    while (!file_.done()) {
      const Strip in_file = clip_below(file_.strip(), limit);
      if (in_file.count == 0) break;
      const StripPair pair = match(in_file, memory_.strip());
      SHIMA_TRY(visit(pair));
      file_.advance(pair.len_bytes * pair.count);
      memory_.advance(pair.len_bytes * pair.count);
    }
    return {};
  }
  // Moves past all bytes below `end`.
  void skip_below(FileOffset end);

 private:
  int rank_;
  FileRange domain_;
  Cursor file_;
  Cursor memory_;
};

class DomainWalk {
 public:
  DomainWalk(std::span<const Post> posts, const Plan& plan, FileRange domain);

  // The next window that has bytes, or nothing. All members must have walked past the one before.
  [[nodiscard]] std::optional<FileRange> next_window() const;
  // Members with bytes in `window`.
  [[nodiscard]] std::vector<MemberWalk*> members_in(FileRange window);

 private:
  std::uint64_t window_bytes_;
  FileRange domain_;
  std::vector<MemberWalk> members_;
};

// The window of the grid that holds `offset`, cut to the domain.
[[nodiscard]] FileRange window_at(FileOffset offset, std::uint64_t window_bytes, FileRange domain);

}  // namespace shima
