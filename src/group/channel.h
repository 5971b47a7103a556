// How the members of an open file act together.
//
// A Channel belongs to one open file: files may be used by several threads in different orders on
// different ranks, so they share nothing. All collective work is built of two calls, exchange() and
// agree(); how data moves in between is chosen per call (see collective/run.h).
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

class Errands;
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

class Channel {
 public:
  virtual ~Channel() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual const std::vector<Member>& members() const = 0;
  // What the program calls a member, in messages.
  [[nodiscard]] virtual std::string_view member_word() const { return "rank"; }
  [[nodiscard]] int size() const { return static_cast<int>(members().size()); }

  // Gives every member's bytes to every member. Collective. The result stays valid until
  // the exchange after the next.
  [[nodiscard]] virtual Result<std::vector<std::span<const std::byte>>> exchange(
      std::span<const std::byte> mine) = 0;
  // Waits for all members and gives all the worst of their outcomes. Collective.
  [[nodiscard]] virtual Outcome agree(const Outcome& mine) = 0;

  // Between these two, members may use each other's memory. A member leaves an agreement that is
  // broken when another is lost, and then has to wait until nobody that lives still uses its own.
  virtual void begin_transfer() {}
  virtual void end_transfer() {}
  virtual void wait_for_transfers() {}

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
  [[nodiscard]] virtual Errands* errands() = 0;
  // The shared file pointer; null where there is no shared memory between all members.
  [[nodiscard]] virtual SharedPointer* shared_pointer() = 0;
  // Messages between members; null where all share one node.
  [[nodiscard]] virtual Messenger* messenger() = 0;
};

}  // namespace shima
