// An open file: independent and collective access, whatever its layout.
//
// The layers above describe accesses as Slices: the bytes of the file and the bytes of memory, in
// one data order. A File cuts them by the layout into subfile ranges and moves them, alone
// (independent) or together with the other members of its channel (collective).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/function_ref.h"
#include "base/result.h"
#include "base/units.h"
#include "device/driver.h"
#include "file/hints/hints.h"
#include "group/channel.h"
#include "independent/contiguous_piece.h"
#include "layout/master_file.h"
#include "observe/call.h"
#include "observe/counters.h"
#include "pattern/pattern.h"

namespace shima {

struct AccessMode {
  bool read = false;
  bool write = false;
  bool create = false;
  bool exclusive = false;
  bool delete_on_close = false;
  bool unique_open = false;
  bool sequential = false;
  bool append = false;

  friend bool operator==(const AccessMode&, const AccessMode&) = default;
};

struct OpenRequest {
  std::string path;
  AccessMode mode;
  Hints hints;
  bool plain = false;  // a new file is not striped, even if hints or directory request it
};

// The same data bytes in the file and in memory; memory offsets are addresses. Both slices have the
// same len_bytes.
struct Transfer {
  Slice file;
  Slice memory;
  std::optional<DevicePlace> device = {};  // the memory's device; nothing: host memory
  CallPlace call = {};                     // for boards and traces
  Tracing tracing = Tracing::as_now;
};

class File {
 public:
  virtual ~File() = default;

  // What a member does with the file that it has opened, before all learn whether all have.
  using Prepare = FunctionRef<Status(File&)>;
  // Opens a file together with the other members of `channel`. Collective; a member whose request
  // or preparation is an error takes part, and then all members fail with the same code.
  [[nodiscard]] static Result<std::unique_ptr<File>> open(std::unique_ptr<Channel> channel,
                                                          const Result<OpenRequest>& request,
                                                          Prepare prepare);

  // Moves the bytes of one member. Blocks; local; returns the data bytes moved (a read stops at the
  // end of the file). Thread-safe against other calls on the same file.
  [[nodiscard]] virtual Result<std::uint64_t> write(const Transfer& transfer) = 0;
  [[nodiscard]] virtual Result<std::uint64_t> read(const Transfer& transfer) = 0;

  // The same for one contiguous piece of host memory, if moves_contiguous(); otherwise the call
  // needs more (statistics, atomic mode, separate caches): then call write() or read().
  [[nodiscard]] virtual bool moves_contiguous() const = 0;
  [[nodiscard]] virtual Result<std::uint64_t> move_contiguous(const ContiguousPiece& piece,
                                                              const CallPlace& place) = 0;

  // Whether write() or read() is expected to return before another thread would have begun to
  // execute it.
  [[nodiscard]] virtual bool moves_at_once(Direction direction, const Transfer& transfer) = 0;

  // write() and read() with all members together. Collective; a member that holds an error takes
  // part, and every member returns the same code.
  [[nodiscard]] virtual Result<std::uint64_t> write_all(const Result<Transfer>& transfer) = 0;
  [[nodiscard]] virtual Result<std::uint64_t> read_all(const Result<Transfer>& transfer) = 0;

  // Local.
  [[nodiscard]] virtual Result<FileOffset> size() = 0;
  // Collective; all members must give one size (otherwise not_same).
  [[nodiscard]] virtual Status set_size(const Result<FileOffset>& size) = 0;
  [[nodiscard]] virtual Status preallocate(const Result<FileOffset>& size) = 0;
  // Assigns each member the offset of its `len` bytes: in rank order from the shared pointer, which
  // advances past all of them. Collective.
  [[nodiscard]] virtual Result<std::int64_t> claim_in_order(const Result<std::uint64_t>& len) = 0;
  // Null if the members share no memory.
  [[nodiscard]] virtual SharedPointer* shared_pointer() = 0;
  [[nodiscard]] virtual bool on_one_node() const = 0;
  // The first member acts for all, if all members pass the same two numbers (otherwise not_same);
  // all return its outcome. `doing` is the phrase for error messages, before the file's path.
  // Collective.
  [[nodiscard]] virtual Status first_member_does(
      const char* doing, const Result<std::pair<std::int64_t, std::int64_t>>& same,
      FunctionRef<Status()> action) = 0;
  // Atomic mode: every access excludes those that it overlaps. Collective; the same on all.
  [[nodiscard]] virtual Status set_atomicity(bool atomic) = 0;
  [[nodiscard]] virtual bool atomicity() const = 0;
  // Collective; reports errors that the disk reported late.
  [[nodiscard]] virtual Status sync() = 0;
  // Collective; afterwards only the destructor may be called. `stats` is appended to the job's
  // statistics by one member.
  [[nodiscard]] virtual Status close() = 0;

  [[nodiscard]] virtual const AccessMode& mode() const = 0;
  // The regions of a striped file; nothing for a plain one.
  [[nodiscard]] virtual std::span<const StripedRegion> striping() const = 0;
  // The hints given, the same on all members.
  [[nodiscard]] virtual const Hints& hints() const = 0;
  // The same, with the values that Shima chose where they leave the choice to it.
  [[nodiscard]] virtual Hints hints_in_effect() const = 0;
  // Replaces the hints by the first member's. Collective; a member that holds an error takes part,
  // and every member returns the worst code. `same` must be equal on all members (otherwise
  // not_same).
  [[nodiscard]] virtual Status set_hints(const Result<Hints>& hints, std::uint64_t same = 0) = 0;
  [[nodiscard]] virtual Counters& counters() = 0;
  // The number of its name in the trace (observe/trace_log.h).
  [[nodiscard]] virtual std::uint16_t trace_number() const = 0;
};

}  // namespace shima
