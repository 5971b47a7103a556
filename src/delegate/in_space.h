// Named desks, for delegatees and requesters that are tasks of one space or of one group of spaces.
//
// In a space, a task that uses another's memory holds it. Between spaces nothing can be held and
// private memory is not visible: the desk is in memory that the group shares, and so are payloads
// that are passed by address. Such memory is never unmapped; only its users free it.
// such memory is never unmapped, and freed by its users only.
#pragma once

#include <memory>
#include <string>

#include "delegate/delegatee.h"
#include "delegate/requester.h"
#include "pvas/task/membership.h"

namespace shima::delegate {

struct DeskOptions {
  std::uint32_t seats = 0;
  std::uint32_t spin_us = 0;
  bool is_for_group = false;  // for tasks of all spaces of the group
};

// A delegatee's desk that other tasks find by name. Its memory stays until the task (or the group)
// ends, because a requester may read it at any time.
class NamedDesk {
 public:
  [[nodiscard]] static Result<std::unique_ptr<NamedDesk>> open(const std::string& name,
                                                               DeskOptions options);
  NamedDesk(const NamedDesk&) = delete;
  NamedDesk& operator=(const NamedDesk&) = delete;
  ~NamedDesk();
  [[nodiscard]] Delegatee& delegatee() { return *delegatee_; }

 private:
  NamedDesk(pvas::Membership self, std::string name) : self_(self), name_(std::move(name)) {}

  pvas::Membership self_;
  std::string name_;
  std::unique_ptr<Delegatee> delegatee_;
};

// A requester's seat at a named desk.
class NamedSeat {
 public:
  // Waits until the desk exists and has a free seat.
  [[nodiscard]] static Result<std::unique_ptr<NamedSeat>> take(
      const std::string& name, RequesterOptions options,
      std::optional<std::chrono::milliseconds> limit);
  NamedSeat(const NamedSeat&) = delete;
  NamedSeat& operator=(const NamedSeat&) = delete;
  ~NamedSeat();
  [[nodiscard]] Requester& requester() { return *requester_; }

 private:
  NamedSeat(pvas::Membership self, std::optional<int> owner) : self_(self), owner_(owner) {}

  pvas::Membership self_;
  std::optional<int> owner_;  // held; nothing if it is a task of another space
  std::unique_ptr<Requester> requester_;
};

}  // namespace shima::delegate
