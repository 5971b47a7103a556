// Collective communication of the members of an open file.
//
// A Channel belongs to one open file: threads may use several files in different orders on
// different ranks, so the files share no channel. All collective work consists of meetings:
// combine() starts a transfer or compares small values, agree() ends a call that has moved bytes.
// No member gets the values of all others, which would take memory for each of them. The way in
// which data moves in between is chosen per call (see collective/run.h).
//
// The failure contract: a member that has entered a collective call reaches every meeting, with its
// own error if it has one. The work between meetings runs inside caught(), so that every failure
// becomes an error; the meetings themselves throw nothing, use only memory that the channel
// allocated when it was created, and have one outcome for all members. Whether a further meeting
// follows depends only on the outcomes of earlier meetings, which are the same on all members.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "group/node/contribution.h"
#include "group/topology.h"

namespace shima {

class WriteRequests;
class Messenger;
class SharedPointer;
class SharedWindows;
class StagingPool;

// A member's input to agree() and the common result: the worst code, and the lowest offset at which
// the file ended.
struct Outcome {
  Code code = Code::ok;
  int sys_errno = 0;
  int rank = -1;  // rank of the member with the worst code
  std::int64_t end_of_file = std::numeric_limits<std::int64_t>::max();
};

// The sum of the members' values, and of those of lower rank.
struct SumInOrder {
  std::uint64_t before = 0;
  std::uint64_t all = 0;
};

class Channel {
 public:
  virtual ~Channel() = default;

  [[nodiscard]] virtual int rank() const = 0;
  // The word for a member in error messages.
  [[nodiscard]] virtual std::string_view member_word() const { return "rank"; }
  [[nodiscard]] int size() const { return topology().size(); }
  [[nodiscard]] virtual const Topology& topology() const = 0;
  // The members whose messages combine() shows to this one: their ranks, by index.
  [[nodiscard]] virtual NodeRanks near_ranks() const = 0;
  [[nodiscard]] virtual int near_index() const = 0;  // of this member
  // The process of a near member.
  [[nodiscard]] virtual std::int32_t near_pid(int index) const = 0;

  // Joins the values of all members, and shows each member's message to the members near it.
  // Collective. If a member passes an error, or a value does not arrive, all members return the
  // worst code. The value stays valid until the next combine().
  [[nodiscard]] virtual Result<std::span<const std::byte>> combine(const Result<Contribution>& mine,
                                                                   JoinValues join) noexcept = 0;
  // Collective; errors as in combine(). If `all` is the largest number, `before` may be anything.
  [[nodiscard]] virtual Result<SumInOrder> sum_in_order(
      const Result<std::uint64_t>& mine) noexcept = 0;
  // The message of a near member in the last combine(), valid until the next meeting but agree().
  // A lasting part is read only between a combine() and the agreement that ends the transfer.
  [[nodiscard]] virtual Result<NearMessage> near_message(int index) = 0;
  // Waits for all members and returns the worst of their outcomes. Collective. `wait`: for the
  // others; used if all members are on one node.
  [[nodiscard]] Outcome agree(const Outcome& mine, WaitLength wait = WaitLength::unknown) noexcept {
    return agree_after(mine, wait);
  }

  // Between begin_transfer() and end_transfer(), members may access each other's memory.
  virtual void begin_transfer() noexcept {}
  virtual void end_transfer() noexcept {}
  // Tells the other members, which may wait for this one in the middle of a transfer, that it has
  // failed and takes part only in the next agreement.
  virtual void quit_transfer() noexcept {}
  // Whether a member has quit this transfer.
  [[nodiscard]] virtual bool transfer_quit() noexcept { return false; }
  // After an agreement on failure: waits until no living member accesses this one's memory and no
  // message of the transfer is in flight. Collective.
  virtual void wait_for_transfers() noexcept {}

  // Buffers for windows.
  [[nodiscard]] virtual StagingPool& staging() = 0;
  // Whether members on this node can access each other's memory, with process_vm_readv/writev or in
  // one address space (one_space()).
  [[nodiscard]] virtual bool can_pull() const = 0;
  // Whether members on this node share one address space.
  [[nodiscard]] virtual bool one_space() const = 0;
  // Windows that members of one node share; null unless all members share memory.
  [[nodiscard]] virtual SharedWindows* windows() = 0;
  // Independent writes that members execute for each other; null if they cannot.
  [[nodiscard]] virtual WriteRequests* write_requests() = 0;
  // The shared file pointer; null unless all members share memory.
  [[nodiscard]] virtual SharedPointer* shared_pointer() = 0;
  // Messages between members; null if all are on one node.
  [[nodiscard]] virtual Messenger* messenger() = 0;

 private:
  // What agree() does.
  [[nodiscard]] virtual Outcome agree_after(const Outcome& mine, WaitLength wait) noexcept = 0;
};

}  // namespace shima
