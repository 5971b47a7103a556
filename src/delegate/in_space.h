// Delegatees and requesters that are tasks of one space, or of spaces of one group: desks have
// names.
//
// In a space whoever uses another's memory holds it. Between spaces nothing can be held and nothing
// private be seen: the desk lies in memory that the group shares, and so do the payloads that go by
// their address; such memory is never unmapped, and freed by its users only.
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

// A delegatee whose desk other tasks find by its name. The desk's memory stays until the task ends,
// or the group, since a requester may look at it at any time.
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

// A requester at a named desk.
class NamedSeat {
 public:
  // Waits until there is such a desk and a seat at it.
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
  std::optional<int> owner_;  // held; none where it is a task of another space
  std::unique_ptr<Requester> requester_;
};

}  // namespace shima::delegate
