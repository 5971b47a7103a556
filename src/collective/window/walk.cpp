#include "collective/window/walk.h"

#include <algorithm>

namespace shima {
namespace {

// The first in order among the windows that contain the domains' next bytes.
std::optional<Window> first_window(std::span<const Domain> domains, std::uint64_t window_bytes,
                                   std::span<const TargetOffset> next) {
  std::optional<std::size_t> first;
  const auto place = [&](std::size_t i) { return next[i].value / as_signed(window_bytes); };
  for (std::size_t i = 0; i < next.size(); ++i) {
    if (next[i] >= domains[i].range.end) continue;
    if (!first || place(i) < place(*first)) first = i;
  }
  if (!first) return std::nullopt;
  const Domain& domain = domains[*first];
  return Window{static_cast<int>(*first), domain.subfile,
                window_at(next[*first], window_bytes, domain.range)};
}

}  // namespace

MemberWalk::MemberWalk(int index, const Post& post, const Layout& layout, const Domain& domain)
    : index_(index), file_(post.file, layout, domain), memory_(post.memory) {}

TargetRange window_at(TargetOffset offset, std::uint64_t window_bytes, TargetRange domain) {
  const std::int64_t size = as_signed(window_bytes);
  const TargetOffset begin{offset.value / size * size};
  // A domain may end where no window of the whole length fits.
  return {std::max(begin, domain.begin), begin + std::min(size, domain.end - begin)};
}

AgentWalk::AgentWalk(int index, const Post& post, const Layout& layout, std::vector<Domain> domains)
    : domains_(std::move(domains)) {
  for (const Domain& domain : domains_) walks_.emplace_back(index, post, layout, domain);
}

std::optional<Window> AgentWalk::next_window(std::uint64_t window_bytes) const {
  std::vector<TargetOffset> next;
  for (const MemberWalk& walk : walks_) next.push_back(walk.next());
  return first_window(domains_, window_bytes, next);
}

bool AgentWalk::has_ended() const {
  for (std::size_t d = 0; d < domains_.size(); ++d)
    if (walks_[d].has_below(domains_[d].range.end)) return false;
  return true;
}

MemberWalk* AgentWalk::of_subfile(int subfile) {
  const auto found = std::ranges::find(domains_, subfile, &Domain::subfile);
  return found == domains_.end() ? nullptr : &walks_[as_unsigned(found - domains_.begin())];
}

DomainWalk::DomainWalk(std::span<const NearPost> posts, const Layout& layout,
                       std::uint64_t window_bytes, std::vector<Domain> domains)
    : layout_(&layout),
      window_bytes_(window_bytes),
      domains_(std::move(domains)),
      members_(domains_.size()) {
  for (std::size_t d = 0; d < domains_.size(); ++d) {
    for (const NearPost& near : posts) {
      if (near.post.len_bytes == 0) continue;
      MemberWalk walk(near.index, near.post, layout, domains_[d]);
      if (walk.next() < domains_[d].range.end) members_[d].push_back(std::move(walk));
    }
  }
}

std::optional<Window> DomainWalk::next_window() const {
  std::vector<TargetOffset> next;
  for (std::size_t d = 0; d < members_.size(); ++d) {
    next.push_back(domains_[d].range.end);
    for (const MemberWalk& member : members_[d]) next[d] = std::min(next[d], member.next());
  }
  return first_window(domains_, window_bytes_, next);
}

// A window keeps its whole length: its end must stay a multiple of the granule.
void DomainWalk::stop_at(FileOffset end_of_file) {
  const std::int64_t size = as_signed(window_bytes_);
  for (Domain& domain : domains_) {
    const std::int64_t end = layout_->below(domain.subfile, end_of_file).value;
    if (end >= domain.range.end.value) continue;
    domain.range.end = std::min(domain.range.end, TargetOffset{(end + size - 1) / size * size});
  }
}

std::vector<MemberWalk*> DomainWalk::members_in(const Window& window) {
  std::vector<MemberWalk*> found;
  for (MemberWalk& member : members_[static_cast<std::size_t>(window.domain)]) {
    // Beyond the end of the file, others may open windows that this walk skips.
    member.skip_below(window.range.begin);
    if (member.has_below(window.range.end)) found.push_back(&member);
  }
  return found;
}

}  // namespace shima
