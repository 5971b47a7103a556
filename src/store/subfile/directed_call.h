// A collective call on a subfile that the I/O node which owns it directs: it collects the windows,
// and this process sends it the bytes of its subgroup, or gets them.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "base/units.h"

namespace shima {

class MessageStream;

// The same for all that take part. Sent as it is.
struct DirectedCall {
  std::uint64_t id = 0;  // of this call on this file
  std::uint32_t participants = 0;
  std::uint32_t writes = 0;  // or reads
  std::uint64_t window_bytes = 0;
  std::uint64_t granule_bytes = 0;
  TargetRange range;  // of the subfile

  friend bool operator==(const DirectedCall&, const DirectedCall&) = default;
};
static_assert(sizeof(DirectedCall) == 48);

// The part of this process. Destroying it before the end of the call ends the call for all.
class DirectedPart {
 public:
  virtual ~DirectedPart() = default;
  [[nodiscard]] virtual MessageStream& stream() = 0;
  // Whether the I/O node answers at all; waits for it.
  [[nodiscard]] virtual bool is_node_alive() = 0;
  // The I/O node is lost: "... on I/O node HOST:PORT". The file must be opened again.
  [[nodiscard]] virtual std::unexpected<Error> lose(int sys_errno) = 0;
  // The call has ended, and the stream has no message under way: the next call may use the
  // connection.
  virtual void end() = 0;
};

}  // namespace shima
