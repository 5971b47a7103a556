#include "simulate/near_posts.h"

namespace shima::simulate {

NodePosts::NodePosts(const Job& job, int node) {
  const auto ranks = job.topology().ranks_on(node);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    Member& member = members_.emplace_back();
    member.post = post_of(job.workload(), ranks[i]);
    const auto bytes = member.writer.message_of(member.post);
    member.lasting.resize(member.writer.len_bytes());
    member.writer.write(member.lasting);
    member.message = {bytes, member.writer.serial(), member.lasting};
  }
}

Result<std::vector<NearPost>> NodePosts::in(FileRange range, PostReader& reader) const {
  std::vector<NearPost> posts;
  for (int i = 0; std::cmp_less(i, members_.size()); ++i) {
    const NearMessage& message = members_[static_cast<std::size_t>(i)].message;
    SHIMA_TRY_ASSIGN(const auto bounds, PostReader::bounds(message.bytes));
    if (!bounds || bounds->highest <= range.begin.value || bounds->lowest >= range.end.value)
      continue;
    SHIMA_TRY_ASSIGN(Post post, reader.read(i, message));
    posts.push_back({i, std::move(post)});
  }
  return posts;
}

}  // namespace shima::simulate
