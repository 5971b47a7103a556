// One member's own reads and writes of a file that several members have opened.
//
// A write uses the first of these methods that is possible: it stays pending until all members
// write together (pending_writes.h), it is combined with writes of other members of the node
// (independent/combine.h), or it is written at once. A read returns what the member itself has
// written: pending writes that it needs are flushed first. In atomic mode an access holds the lock
// of its range. Device memory is moved through a host buffer, piece by piece. Thread-safe.
#pragma once

#include <mutex>

#include "base/function_ref.h"
#include "device/staged_memory.h"
#include "file/file.h"
#include "file/pending_writes.h"
#include "group/caches.h"
#include "group/channel.h"
#include "independent/independent.h"
#include "independent/read_ahead.h"
#include "independent/spare_buffer.h"
#include "observe/shared_counters.h"
#include "store/striped/logical_file.h"

namespace shima {

class OwnAccess {
 public:
  struct Parts {
    Channel& channel;
    LogicalFile& file;
    const Hints& hints;  // may change between calls: tune()
    QueuePool& device_queues;
    SharedCounters& counters;
    Caches caches;
    bool cores_to_spare;  // opened by one process that may use several cores
  };
  explicit OwnAccess(const Parts& parts) : parts_(parts), read_ahead_(parts.file) {}

  // Adopts changed hints and the atomicity.
  void tune(bool atomic);

  // An independent call of the program.
  Result<std::uint64_t> write(const Transfer& transfer, Counters& counters);
  Result<std::uint64_t> read(const Transfer& transfer, Counters& counters);
  // Whether such a call has nothing to do but to move its bytes, if these are contiguous.
  [[nodiscard]] bool moves_at_once() const {
    return parts_.caches != Caches::apart && !atomic_ && !parts_.counters.wanted();
  }
  // Then: the whole of it, for host memory.
  [[gnu::always_inline]] Result<std::uint64_t> move_contiguous(const ContiguousPiece& piece) {
    return shima::move_contiguous(piece, &read_ahead_, parts_.file);
  }
  // Accesses the file at once.
  Result<std::uint64_t> move(Direction direction, const Transfer& transfer, Counters& counters);

  // The size of the file including this member's pending writes.
  Result<FileOffset> size();

  // Writes what is pending.
  Status flush();
  [[nodiscard]] bool any_pending();
  // The same by `write`, which all members call together. Other calls that need pending bytes wait
  // until it returns, so `write` must not wait for what another member's program has yet to do.
  Status flush_by(FunctionRef<Status(const Result<Transfer>& pending)> write);

 private:
  Result<bool> keep(const Transfer& transfer);
  Status write_pending();
  Result<bool> combine(const Transfer& transfer, Counters& counters);
  Result<std::uint64_t> read_after_own_writes(const Transfer& transfer, Counters& counters);
  Result<std::uint64_t> move_locked(Direction direction, const Transfer& transfer,
                                    Counters& counters);
  Result<std::uint64_t> move_pieces(Direction direction, const Transfer& transfer,
                                    Counters& counters);
  Result<std::uint64_t> move_piece(Direction direction, const Transfer& piece, Counters& counters);
  Result<std::uint64_t> move_staged(Direction direction, const Transfer& transfer,
                                    Counters& counters);
  [[nodiscard]] IndependentOptions options();

  Parts parts_;
  ReadAhead read_ahead_;
  SpareBuffer buffer_;
  bool atomic_ = false;
  std::mutex combining_;
  std::mutex pending_mutex_;  // held until data taken from pending_ is in the file
  PendingWrites pending_;
  std::mutex alone_;  // for atomic mode: file locks do not exclude threads of one process
};

}  // namespace shima
