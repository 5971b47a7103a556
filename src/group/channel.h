// How the members of an open file act together.
//
// A Channel belongs to one open file: files may be used by several threads in different orders on
// different ranks, so they share nothing. All collective work is built of two meetings, exchange()
// and agree(); how data moves in between is chosen per call (see collective/run.h).
//
// The failure contract: a member that has entered a collective call reaches every meeting, with an
// error of its own if it has one. What a member does between meetings it does within caught(), so
// that nothing but an error comes out; the meetings themselves throw nothing, take what they need
// from memory that the channel got when it was made, and have one outcome for all members. Whether
// a further meeting follows depends only on what the ones before told all members alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace shima {

class WriteRequests;
class Messenger;
class SharedPointer;
class SharedWindows;
class StagingPool;

// What a member brings to agree() and what all take away: the worst code, and the lowest offset at
// which the file ended.
struct Outcome {
  Code code = Code::ok;
  int sys_errno = 0;
  int rank = -1;  // who had the worst code
  std::int64_t end_of_file = std::numeric_limits<std::int64_t>::max();
};

// Where a member runs.
struct Member {
  int node = 0;
  std::int32_t pid = 0;
  int cores = 1;  // usable by the members of its node together
};

// What the members brought, by rank.
using Messages = std::span<const std::span<const std::byte>>;

class Channel {
 public:
  virtual ~Channel() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual const std::vector<Member>& members() const = 0;
  // What the program calls a member, in messages.
  [[nodiscard]] virtual std::string_view member_word() const { return "rank"; }
  [[nodiscard]] int size() const { return static_cast<int>(members().size()); }

  // Gives every member's message to every member. Collective. Where a member brings an error in
  // place of a message, or a message does not arrive, all members get the worst code. The messages
  // stay valid until the next exchange.
  [[nodiscard]] virtual Result<Messages> exchange(
      const Result<std::span<const std::byte>>& mine) noexcept = 0;
  // Waits for all members and gives all the worst of their outcomes. Collective.
  [[nodiscard]] virtual Outcome agree(const Outcome& mine) noexcept = 0;

  // Between these two, members may use each other's memory.
  virtual void begin_transfer() noexcept {}
  virtual void end_transfer() noexcept {}
  // Tells the others, who may wait for this member in the middle of a transfer, that it comes to
  // the next agreement with an error, and to nothing before.
  virtual void quit_transfer() noexcept {}
  // Whether a member of this transfer has told so.
  [[nodiscard]] virtual bool transfer_quit() noexcept { return false; }
  // After an agreement on failure: waits until no member that lives uses this one's memory and no
  // message of the transfer is under way. Collective.
  virtual void wait_for_transfers() noexcept {}

  // Buffers for windows.
  [[nodiscard]] virtual StagingPool& staging() = 0;
  // Whether members on this node can reach each other's memory, with process_vm_readv/writev or as
  // one_space() says.
  [[nodiscard]] virtual bool can_pull() const = 0;
  // Whether members on this node live in one address space.
  [[nodiscard]] virtual bool one_space() const = 0;
  // Windows that members of one node share; null where there is no shared memory between all
  // members.
  [[nodiscard]] virtual SharedWindows* windows() = 0;
  // Independent writes that members carry out for each other; null where they cannot.
  [[nodiscard]] virtual WriteRequests* write_requests() = 0;
  // The shared file pointer; null where there is no shared memory between all members.
  [[nodiscard]] virtual SharedPointer* shared_pointer() = 0;
  // Messages between members; null where all share one node.
  [[nodiscard]] virtual Messenger* messenger() = 0;
};

}  // namespace shima
