// A subfile of a target: the one interface through which bytes reach a disk.
//
// Every call moves all its bytes or says why not: short writes are continued, and what cannot be
// continued is an error. Reads stop at the end of the file. Implementations: posix, memory (tests),
// faulty (tests).
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "base/units.h"

namespace shima {

// What makes two open subfiles the same file.
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
  virtual ~Subfile() = default;

  // Writes all pieces one after the other from `offset`.
  [[nodiscard]] virtual Status write(TargetOffset offset, std::span<const iovec> pieces) = 0;
  // Fills the pieces from `offset`; returns fewer bytes only at the end of the file.
  [[nodiscard]] virtual Result<std::uint64_t> read(TargetOffset offset,
                                                   std::span<const iovec> pieces) = 0;
  // Moves many runs with few system calls, in any order. False where that cannot be done, or if any
  // of them was not moved whole; then some may have been moved, and each has to be moved by itself.
  [[nodiscard]] virtual bool move_apart(std::span<const ApartRun> runs, bool writing) = 0;
  // Whether a byte at `offset` can be read without waiting for a disk; false where unknown.
  [[nodiscard]] virtual bool cached(TargetOffset offset) = 0;
  // Says that the bytes will be read soon; does not wait for a disk, and may do nothing.
  virtual void will_need(TargetRange range) = 0;
  [[nodiscard]] virtual Result<std::uint64_t> size() = 0;
  // Where the next byte that may have been written lies, at `from` or beyond; nothing if there is
  // none.
  [[nodiscard]] virtual Result<std::optional<TargetOffset>> next_data(TargetOffset from) = 0;
  [[nodiscard]] virtual Status truncate(std::uint64_t size_bytes) = 0;
  // Reserves storage up to `size_bytes`; never shrinks, never changes data.
  [[nodiscard]] virtual Status preallocate(std::uint64_t size_bytes) = 0;
  [[nodiscard]] virtual Status sync() = 0;
  // Where nodes cache apart (see close_to_open.h): sends what was written to where other nodes find
  // it, and makes later reads and sizes ask for what they sent. Elsewhere both do nothing.
  [[nodiscard]] virtual Status publish() = 0;
  virtual void look_again() = 0;
  [[nodiscard]] virtual bool close_to_open() const = 0;
  // Whether lock() excludes subfiles of this node alone, although other nodes reach the file.
  [[nodiscard]] virtual bool locks_stay_on_node() const = 0;
  // Blocks until no other open subfile holds a lock on any of these bytes that excludes this one;
  // threads that share a subfile do not exclude each other.
  [[nodiscard]] virtual Status lock(TargetOffset offset, std::uint64_t len_bytes,
                                    bool exclusive) = 0;
  virtual void unlock(TargetOffset offset, std::uint64_t len_bytes) = 0;
  // Releases the file and reports what the system reported late. Call once.
  [[nodiscard]] virtual Status close() = 0;
  [[nodiscard]] virtual Result<FileIdentity> identity() = 0;

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
  bool direct_read = false;  // past the page cache, where the file system can
  bool direct_write = false;
  bool follow_links = true;
  unsigned permissions = 0666;             // before the umask
  std::optional<bool> close_to_open = {};  // nothing: as the file system is known to be
};

// Opens a file of the operating system; if SHIMA_FAULT is set, one that fails as it says (tests).
[[nodiscard]] Result<std::unique_ptr<Subfile>> open_subfile(const SubfileOpen& request);

}  // namespace shima
