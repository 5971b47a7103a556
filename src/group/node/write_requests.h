// Requests by which members of one node pass independent writes to each other.
//
// A member posts its write and then either leads, executing its own write and all that others have
// posted, or sleeps until the leader has executed it. At most one member of a file leads at a time.
// After a leader's process has exited, members write by themselves permanently.
#pragma once

#include <optional>
#include <span>

#include "group/node/node_segment.h"

namespace shima {

class WriteRequests {
 public:
  WriteRequests(NodeSegment& segment, Slot* slot, const WaitHooks& hooks)
      : segment_(segment), slot_(slot), hooks_(hooks) {
    hooks_.peers = [this] { return check_leader(); };
  }
  WriteRequests(const WriteRequests&) = delete;
  WriteRequests& operator=(const WriteRequests&) = delete;

  [[nodiscard]] int index() const { return segment_.index(); }
  [[nodiscard]] int size() const { return segment_.member_count(); }

  [[nodiscard]] const NodeSegment& segment() const { return segment_; }

  // Called by a requester. False if the message is too long, a leader was lost, or there
  // is no memory.
  [[nodiscard]] bool post(std::span<const std::byte> message);
  // Waits until this member's request is completed or it may lead; returns the state: done, failed
  // or posted.
  [[nodiscard]] WriteRequest::State wait();

  // Called by the leader. Takes a request that was posted and not yet taken; its message stays
  // valid until finish().
  [[nodiscard]] std::optional<std::span<const std::byte>> take(int member);
  void finish(int member, bool well);
  void stop_leading();
  // Ends this member's own request and its role as leader.
  void take_back();

 private:
  [[nodiscard]] WriteRequest& request(int index) const {
    return segment_.member(slot_, index).request;
  }
  [[nodiscard]] bool start_leading();
  [[nodiscard]] Status check_leader() const;

  NodeSegment& segment_;
  Slot* slot_;
  WaitHooks hooks_;
  bool leader_lost_ = false;
};

}  // namespace shima
