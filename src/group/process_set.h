// Processes that act together, declared by an array of their process IDs (PFF's process set).
//
// The members of a set open files together: each file gets its own channel, like the files of a
// communicator.
#pragma once

#include <memory>

#include "group/node_channel.h"
#include "group/roll_call.h"

namespace shima {

class ProcessSet {
 public:
  // Blocks until all members have arrived; for errors see call_roll().
  [[nodiscard]] static Result<std::unique_ptr<ProcessSet>> meet(const RollCall& call);

  [[nodiscard]] int index() const { return ground_->segment->index(); }
  [[nodiscard]] int size() const { return ground_->segment->member_count(); }
  // A channel for another file. Collective: all members make their channels in the same order.
  [[nodiscard]] Result<std::unique_ptr<Channel>> make_channel();
  // Waits for all members. Collective.
  [[nodiscard]] Status barrier();

 private:
  explicit ProcessSet(std::shared_ptr<const NodeGround> ground) : ground_(std::move(ground)) {}

  std::shared_ptr<const NodeGround> ground_;
  std::uint64_t channels_ = 0;
  std::unique_ptr<Channel> own_;
};

}  // namespace shima
