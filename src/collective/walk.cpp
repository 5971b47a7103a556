#include "collective/walk.h"

#include <algorithm>

namespace shima {

MemberWalk::MemberWalk(int rank, const Post& post, FileRange domain)
    : rank_(rank), domain_(domain), file_(post.file), memory_(post.memory) {
  file_.seek_offset(domain.begin.value);
}

FileOffset MemberWalk::next() const {
  return file_.done() ? domain_.end : std::min(domain_.end, FileOffset{file_.strip().offset});
}

std::uint64_t MemberWalk::bytes_below(FileOffset end) const {
  Cursor ahead = file_;
  ahead.seek_offset(std::min(end, domain_.end).value);
  return ahead.byte() - file_.byte();
}

void MemberWalk::skip_below(FileOffset end) { file_.seek_offset(std::min(end, domain_.end).value); }

FileRange window_at(FileOffset offset, std::uint64_t window_bytes, FileRange domain) {
  const std::int64_t size = as_signed(window_bytes);
  const FileOffset begin{offset.value / size * size};
  return {std::max(begin, domain.begin), std::min(begin + size, domain.end)};
}

DomainWalk::DomainWalk(std::span<const Post> posts, const Plan& plan, FileRange domain)
    : window_bytes_(plan.window_bytes), domain_(domain) {
  for (std::size_t i = 0; i < posts.size(); ++i) {
    const Bounds& bounds = posts[i].bounds;
    if (posts[i].len_bytes == 0 || bounds.lowest >= domain.end.value ||
        bounds.highest <= domain.begin.value)
      continue;
    members_.emplace_back(static_cast<int>(i), posts[i], domain);
  }
}

std::optional<FileRange> DomainWalk::next_window() const {
  FileOffset next = domain_.end;
  for (const MemberWalk& member : members_) next = std::min(next, member.next());
  if (next >= domain_.end) return std::nullopt;
  return window_at(next, window_bytes_, domain_);
}

std::vector<MemberWalk*> DomainWalk::members_in(FileRange window) {
  std::vector<MemberWalk*> found;
  for (MemberWalk& member : members_)
    if (member.has_below(window.end)) found.push_back(&member);
  return found;
}

}  // namespace shima
