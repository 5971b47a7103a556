// A subfile that is a file of the operating system.
#pragma once

#include <fcntl.h>

#include <memory>

#include "store/subfile/mapped_write.h"
#include "store/subfile/subfile.h"

namespace shima {

// The system calls a posix subfile makes, so that tests can make them fail or fall short.
class FileSystemCalls {
 public:
  virtual ~FileSystemCalls() = default;
  virtual ssize_t pwritev(int fd, const iovec* pieces, int count, off_t offset);
  virtual ssize_t preadv(int fd, const iovec* pieces, int count, off_t offset);
  // Moves runs in another way, if nothing prevents it (see move_through_ring).
  virtual bool move_apart(int fd, std::span<const ApartRun> runs, bool writing, bool avoids_slow);
  virtual bool maps_writes(MappedWriter& writer, int fd);
  virtual std::unique_ptr<FileView> view(int fd, TargetRange range);
  virtual bool write_mapped(MappedWriter& writer, int fd, std::span<const ApartRun> runs);
  virtual int fsync(int fd);
  // fcntl(F_OFD_SETLKW).
  virtual int lock(int fd, struct flock& range);
  // fcntl(F_OFD_SETLK).
  virtual int try_lock(int fd, struct flock& range);
};

// `more_flags`: for open(2), in addition to those derived from the request.
[[nodiscard]] Result<std::unique_ptr<Subfile>> open_posix_subfile(
    const SubfileOpen& request, std::unique_ptr<FileSystemCalls> calls, int more_flags = 0);

// Calls that fail as specified: "write:ENOSPC:after=1048576", "read:EIO:after=0", "write:short",
// "sync:EIO", "lock:ENOLCK"; several are separated by commas. `after` counts bytes moved before the
// fault. "kill:PHASE:RANK[:NTH]" is executed by base/fault_point.h, but validated here.
[[nodiscard]] Result<std::unique_ptr<FileSystemCalls>> make_faulty_calls(const std::string& spec);

}  // namespace shima
