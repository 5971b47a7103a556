// A subfile on a target: the only interface through which bytes reach a disk.
//
// Every call moves all its bytes or returns an error: short writes are continued. Reads stop at the
// end of the file. Implementations: posix, memory (tests), faulty (tests).
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>

#include "base/file_view.h"
#include "base/result.h"
#include "base/units.h"
#include "store/subfile/directed_call.h"
#include "store/subfile/far_request.h"

namespace shima {

// Two open subfiles with equal identity are the same file.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

// Consecutive bytes of a subfile and the memory that holds them; one of many.
struct ApartRun {
  TargetOffset begin;
  std::span<const iovec> pieces;  // not empty
  std::uint64_t len_bytes = 0;
};

class Subfile {
 public:
  enum class FarOp : std::uint8_t { size, sync, close };

  virtual ~Subfile() = default;

  // Writes all pieces one after the other from `offset`.
  [[nodiscard]] virtual Status write(TargetOffset offset, std::span<const iovec> pieces) = 0;
  // Fills the pieces from `offset`; returns fewer bytes only at the end of the file.
  [[nodiscard]] virtual Result<std::uint64_t> read(TargetOffset offset,
                                                   std::span<const iovec> pieces) = 0;
  // Moves many runs with few system calls, in any order. False if that is impossible, or if any run
  // was not moved completely; then some may have been moved, and the caller must move each run
  // again.
  [[nodiscard]] virtual bool move_apart(std::span<const ApartRun> runs, bool writing) = 0;
  // Writes many small runs, in the order of the file, that lie close together (mapped_write.h).
  // False as above; maps_writes() tells whether it is expected to succeed.
  [[nodiscard]] virtual bool maps_writes() { return false; }
  [[nodiscard]] virtual bool write_mapped(std::span<const ApartRun> /*runs*/) { return false; }
  // The bytes as they lie in the page cache; null if they don't, or may not be sent from there.
  [[nodiscard]] virtual std::unique_ptr<FileView> view(TargetRange /*range*/) { return nullptr; }
  // Whether a byte at `offset` can be read without waiting for a disk; false where unknown.
  [[nodiscard]] virtual bool cached(TargetOffset offset) = 0;
  // Whether write() leaves the bytes in this machine's page cache; false where unknown.
  [[nodiscard]] virtual bool writes_to_cache() const { return false; }
  // Whether each call is a round trip to another machine, so that many runs are to be moved at
  // once.
  [[nodiscard]] virtual bool is_far() const { return false; }
  // Of far subfiles, several may be asked at once: these begin an operation. Null: not a far one,
  // or the operation has to be called in the usual way. The subfile is locked until the request is
  // destroyed, so a thread that has several must begin them in the order of the subfiles.
  [[nodiscard]] virtual std::unique_ptr<FarRequest> begin_move(std::span<const ApartRun> /*runs*/,
                                                               bool /*writing*/) {
    return nullptr;
  }
  [[nodiscard]] virtual std::unique_ptr<FarRequest> begin(FarOp /*op*/) { return nullptr; }
  // Not 0 if an I/O node owns the subfile: the same for all processes that reach the same subfile
  // through the same node.
  [[nodiscard]] virtual std::uint64_t node_identity() const { return 0; }
  // Takes part in a collective call that the I/O node directs.
  [[nodiscard]] virtual Result<std::unique_ptr<DirectedPart>> join(const DirectedCall& call) {
    std::ignore = call;
    return fail(Code::internal, "no I/O node owns the subfile");
  }
  // Announces that the bytes will be read soon; does not wait for a disk, and may do nothing.
  virtual void will_need(TargetRange range) = 0;
  [[nodiscard]] virtual Result<std::uint64_t> size() = 0;
  // The first offset at or after `from` that may have been written; nothing if there is none.
  [[nodiscard]] virtual Result<std::optional<TargetOffset>> next_data(TargetOffset from) = 0;
  [[nodiscard]] virtual Status truncate(std::uint64_t size_bytes) = 0;
  // Reserves storage up to `size_bytes`; never shrinks, never changes data.
  [[nodiscard]] virtual Status preallocate(std::uint64_t size_bytes) = 0;
  [[nodiscard]] virtual Status sync() = 0;
  // Whether this open subfile has changed nothing since its last sync; false where unknown.
  [[nodiscard]] virtual bool is_synced() const { return false; }
  virtual void note_changed() {}
  // On file systems where nodes cache separately (see close_to_open.h): sends written bytes to the
  // server, and makes later reads and sizes fetch those of other nodes. Elsewhere both do nothing.
  [[nodiscard]] virtual Status publish() = 0;
  virtual void look_again() = 0;
  [[nodiscard]] virtual bool close_to_open() const = 0;
  // See local_identity() of close_to_open.h.
  [[nodiscard]] virtual std::uint64_t local_identity() const = 0;
  // Whether lock() excludes only subfiles of this node, although other nodes can access the file.
  [[nodiscard]] virtual bool locks_stay_on_node() const = 0;
  // Blocks until no other open subfile holds a conflicting lock on any of these bytes; threads that
  // share a subfile do not exclude each other.
  [[nodiscard]] virtual Status lock(TargetOffset offset, std::uint64_t len_bytes,
                                    bool exclusive) = 0;
  // The same, but false instead of waiting.
  [[nodiscard]] virtual Result<bool> try_lock(TargetOffset offset, std::uint64_t len_bytes,
                                              bool exclusive) = 0;
  virtual void unlock(TargetOffset offset, std::uint64_t len_bytes) = 0;
  // Who holds a lock that conflicts with an exclusive one; for people.
  [[nodiscard]] virtual std::string lock_holder(TargetOffset offset, std::uint64_t len_bytes) = 0;
  // Releases the file and reports errors that the system reported late. Call once.
  [[nodiscard]] virtual Status close() = 0;
  [[nodiscard]] virtual Result<FileIdentity> identity() = 0;
  [[nodiscard]] virtual Result<uid_t> owner() = 0;

  [[nodiscard]] Status write(TargetOffset offset, const void* data, std::uint64_t len_bytes);
  [[nodiscard]] Result<std::uint64_t> read(TargetOffset offset, void* data,
                                           std::uint64_t len_bytes);
};

struct SubfileOpen {
  std::string path;
  bool read = false;
  bool write = false;
  bool create = false;
  bool exclusive = false;
  bool direct_read = false;  // bypass the page cache if the file system can
  bool direct_write = false;
  bool follow_links = true;
  int directory_fd = -1;        // if not -1, the file is the last name of `path` in this directory
  unsigned permissions = 0666;  // before the umask
  std::optional<bool> close_to_open = {};  // nothing: as known for the file system
  std::optional<bool> avoids_slow = {};    // copies (base/copy/distance.h); nothing: as measured
  // The longest folio that a buffered write() makes on a local file system: a power of two, or 0
  // for any. The page cache takes as many bytes of a call as one folio as its rest has, rounded
  // down to a power of two, and as its place in the file is a multiple of; so calls are shorter
  // than twice this. Free memory of 2 MiB is what a virtual machine gives back to its host, and a
  // folio of that length is fetched from there page by page, which takes 4 ms. ext4 (from
  // Linux 6.16 on) passes over all blocks of a folio at each later write to it: 4 KiB take 26 us
  // instead of 2.5 after calls of 1 MiB.
  std::uint64_t portion_bytes = std::uint64_t{512} << 10;
};

// Opens a file of the operating system; if SHIMA_FAULT is set, one with its faults (tests).
[[nodiscard]] Result<std::unique_ptr<Subfile>> open_subfile(const SubfileOpen& request);

}  // namespace shima
