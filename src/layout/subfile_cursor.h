// Walks the bytes of a slice of the file within one subfile.
//
// A Cursor walks the slice in file offsets. Only those in the subfile's stripes count, and within a
// stripe target offsets differ from file offsets by a constant. So this is a Cursor, its current
// stripe, and that constant; it skips bytes of other subfiles. A plain file has one unbounded
// stripe and nothing to skip. Pure.
#pragma once

#include <tuple>

#include "layout/layout.h"
#include "pattern/copy.h"
#include "pattern/cursor.h"

namespace shima {

// Consecutive bytes of one subfile.
struct Domain {
  int subfile = 0;
  TargetRange range;
  friend bool operator==(const Domain&, const Domain&) = default;
};

// The ranges of subfiles that a range of the file covers.
[[nodiscard]] std::vector<Domain> parts_of(const Layout& layout, FileRange range);

class SubfileCursor {
 public:
  // The slice must be ordered; the layout must outlive the cursor. Starts at the first byte in the
  // domain.
  SubfileCursor(Slice slice, const Layout& layout, const Domain& domain);

  // The offset of the next byte in the domain; the domain's end if there is none.
  [[nodiscard]] TargetOffset next() const;
  // The position in the slice's data.
  [[nodiscard]] std::uint64_t byte() const { return cursor_.byte(); }
  // The number of bytes from here up to `end`.
  [[nodiscard]] std::uint64_t bytes_below(TargetOffset end) const;
  // Moves past all bytes below `end`.
  void skip_below(TargetOffset end);

  // Calls visit(Strip, in target offsets) for the bytes below `end`, and moves past them.
  template <class Visit>
  void for_each_strip_below(TargetOffset end, Visit visit) {
    std::ignore = each_run_below(end, [&](FileOffset stop) -> Status {
      shima::for_each_strip_below(cursor_, stop.value, [&](Strip strip) {
        strip.offset += shift_;
        visit(strip);
      });
      return {};
    });
  }

  // The same together with a cursor over the same data elsewhere: visit(StripPair{here, there}). A
  // visit returns a Status; the first error ends the walk.
  template <class Visit>
  [[nodiscard]] Status match_below(TargetOffset end, Cursor& other, Visit visit);

 private:
  // match_below() for the pieces of a list whose data is in one piece elsewhere.
  template <class Visit>
  [[nodiscard]] Status match_run(FileOffset stop, Cursor& other, Visit& visit);
  // Calls step(file offset at which to stop) for each stripe below `end`; step moves cursor_ there.
  template <class Step>
  [[nodiscard]] Status each_run_below(TargetOffset end, Step step) {
    const TargetOffset limit = std::min(end, domain_.range.end);
    while (next() < limit) {
      SHIMA_TRY(step(std::min(run_.end, FileOffset{limit.value - shift_})));
      settle();
    }
    return {};
  }
  void settle();

  const Layout* layout_;
  Domain domain_;
  Cursor cursor_;
  FileRange run_;           // the stripe of cursor_
  std::int64_t shift_ = 0;  // target offset minus file offset
  bool done_ = false;
};

template <class Visit>
Status SubfileCursor::match_below(TargetOffset end, Cursor& other, Visit visit) {
  return each_run_below(end, [&](FileOffset stop) -> Status {
    if (other.byte() != cursor_.byte()) other.seek_byte(cursor_.byte());
    while (!cursor_.done()) {
      SHIMA_TRY(match_run(stop, other, visit));
      if (cursor_.done()) break;
      const Strip here = clip_below(cursor_.strip(), stop.value);
      if (here.count == 0) break;
      StripPair pair = match(here, other.strip());
      const std::uint64_t len_bytes = pair.len_bytes * pair.count;
      pair.a_offset += shift_;
      SHIMA_TRY(visit(pair));
      cursor_.advance(len_bytes);
      other.advance(len_bytes);
    }
    return {};
  });
}

template <class Visit>
Status SubfileCursor::match_run(FileOffset stop, Cursor& other, Visit& visit) {
  ListRun run = cursor_.list_run();
  if (run.empty()) return {};
  const Strip there = other.strip();
  std::uint64_t passed_bytes = 0;
  Status status;
  for (; !run.empty() && status; ++run.piece) {
    const std::int64_t offset = run.offset();
    const std::uint64_t len_bytes = run.len_bytes();
    if (offset + as_signed(len_bytes) > stop.value ||
        passed_bytes + len_bytes > std::min(there.len_bytes, cursor_.bytes_left()))
      break;
    const std::int64_t step = as_signed(len_bytes);
    status = visit(StripPair{offset + shift_, there.offset + as_signed(passed_bytes), step, step,
                             len_bytes, 1});
    passed_bytes += len_bytes;
  }
  cursor_.leave_run(run, passed_bytes);
  other.advance(passed_bytes);
  return status;
}

}  // namespace shima
