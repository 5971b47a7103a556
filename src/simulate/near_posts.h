// What the members of one node show each other in a simulated call: their encoded posts.
#pragma once

#include <deque>
#include <vector>

#include "collective/plan/post_message.h"
#include "simulate/job.h"

namespace shima::simulate {

class NodePosts {
 public:
  NodePosts(const Job& job, int node);
  NodePosts(const NodePosts&) = delete;
  NodePosts& operator=(const NodePosts&) = delete;

  // The posts with data in `range`, as a member that serves it reads them. They refer to this
  // object and to `reader`.
  [[nodiscard]] Result<std::vector<NearPost>> in(FileRange range, PostReader& reader) const;

 private:
  struct Member {
    Post post;
    PostWriter writer;
    std::vector<std::byte> lasting;
    NearMessage message;
  };
  std::deque<Member> members_;  // by index
};

}  // namespace shima::simulate
