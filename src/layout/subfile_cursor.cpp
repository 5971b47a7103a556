#include "layout/subfile_cursor.h"

namespace shima {

std::vector<Domain> parts_of(const Layout& layout, FileRange range) {
  std::vector<Domain> parts;
  for (int i = 0; i < layout.subfile_count(); ++i) {
    const TargetRange part{layout.below(i, range.begin), layout.below(i, range.end)};
    if (!part.empty()) parts.push_back({i, part});
  }
  return parts;
}

SubfileCursor::SubfileCursor(Slice slice, const Layout& layout, const Domain& domain)
    : layout_(&layout), domain_(domain), cursor_(std::move(slice)) {
  settle();
  skip_below(domain.range.begin);
}

TargetOffset SubfileCursor::next() const {
  if (done_) return domain_.range.end;
  return std::min(domain_.range.end, TargetOffset{cursor_.strip().offset + shift_});
}

// Finds the stripe of the next byte in this subfile.
void SubfileCursor::settle() {
  while (!cursor_.done()) {
    const FileOffset at{cursor_.strip().offset};
    if (at < run_.end) return;
    const TargetOffset here = layout_->below(domain_.subfile, at);
    if (here >= domain_.range.end) break;
    run_ = layout_->run_at(domain_.subfile, here);
    shift_ = here.value - run_.begin.value;
    if (at < run_.begin) cursor_.seek_offset(run_.begin.value);
  }
  done_ = true;
}

std::uint64_t SubfileCursor::bytes_below(TargetOffset end) const {
  SubfileCursor ahead = *this;
  std::uint64_t sum = 0;
  std::ignore = ahead.each_run_below(end, [&](FileOffset stop) -> Status {
    const std::uint64_t before = ahead.cursor_.byte();
    ahead.cursor_.seek_offset(stop.value);
    sum += ahead.cursor_.byte() - before;
    return {};
  });
  return sum;
}

void SubfileCursor::skip_below(TargetOffset end) {
  const TargetOffset stop = std::min(end, domain_.range.end);
  if (next() >= stop) return;
  cursor_.seek_offset(layout_->run_at(domain_.subfile, stop).begin.value);
  settle();
}

}  // namespace shima
