// Delegatees and requesters that are tasks of one space: desks have names, and whoever uses
// another's memory holds it.
#pragma once

#include <memory>
#include <string>

#include "delegate/delegatee.h"
#include "delegate/requester.h"
#include "pvas/membership.h"

namespace shima::delegate {

// A delegatee whose desk other tasks find by its name. The desk's memory stays until the task ends,
// since a requester may look at it at any time.
class NamedDesk {
 public:
  [[nodiscard]] static Result<std::unique_ptr<NamedDesk>> open(const std::string& name,
                                                               std::uint32_t seats,
                                                               std::uint32_t spin_us);
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
  NamedSeat(pvas::Membership self, int owner) : self_(self), owner_(owner) {}

  pvas::Membership self_;
  int owner_;  // held
  std::unique_ptr<Requester> requester_;
};

}  // namespace shima::delegate
