// A subgroup master's part in a collective call whose agents are I/O nodes: it joins the call at
// each of them, exchanges messages with them, and learns how the call has ended there.
//
// If a member fails or another one quits, this object is destroyed before the end. Then its
// connections end, and so does the call for all others.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "collective/io_node/stream_messenger.h"
#include "collective/window/path_context.h"
#include "net/wire.h"

namespace shima {

class IoNodeCall {
 public:
  // How many subgroups take part in the call.
  IoNodeCall(PathContext& context, int participants)
      : context_(context), participants_(participants) {}

  // Joins the call at the I/O nodes that are these agents.
  [[nodiscard]] Status join(std::span<const int> agents);
  [[nodiscard]] Messenger& messenger() { return messenger_; }
  [[nodiscard]] bool done() const { return ended_ == parts_.size(); }
  // Does what can be done now; returns whether there was anything. An error of the call on any I/O
  // node, and of the connection to it.
  [[nodiscard]] Result<bool> step();
  // An error if an I/O node that is silent, while others may not be, does not live.
  [[nodiscard]] Status check_nodes();

 private:
  struct Part {
    std::unique_ptr<DirectedPart> part;
    int subfile = 0;
    std::uint64_t end_number = 0;  // of the last message, in its lane
    bool has_ended = false;
    Clock::time_point last_moved = Clock::now();
  };
  [[nodiscard]] Status end(Part& part, const MessageBuffer& message);

  PathContext& context_;
  int participants_;
  std::chrono::milliseconds longest_silence_ = std::chrono::milliseconds(node_timeout()) / 2;
  StreamMessenger messenger_;
  std::vector<Part> parts_;
  std::size_t ended_ = 0;
};

}  // namespace shima
