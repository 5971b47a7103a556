// Where members of one node leave independent writes for each other.
//
// A member posts its write and then either leads, carrying out its own and all that others have
// posted, or sleeps until the leader has done it. At most one member of a file leads at a time.
// When a leader's process has ended, members go back to writing by themselves, for good: nobody
// needs another to write alone.
#pragma once

#include <optional>
#include <span>

#include "group/node_segment.h"

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

  // As one who wants something done. False if the message is too long to be left, or a leader is
  // lost.
  [[nodiscard]] bool post(std::span<const std::byte> message);
  // Waits until this member's request is over or it may lead; returns the state: done, failed or
  // posted.
  [[nodiscard]] WriteRequest::State wait();

  // As the leader. Takes an request that was posted and not yet taken; its message stays valid
  // until finish().
  [[nodiscard]] std::optional<std::span<const std::byte>> take(int member);
  void finish(int member, bool well);
  void stop_leading();
  // Ends this member's own request and its leading.
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
