// A lock that makes an NFS client keep to what was written, and look for what others wrote.
//
// Linux's NFS client sends a page whole that is up to date in its cache or lies beyond the end of
// file that it knows, and so overwrites what other nodes have put there. It sends only the bytes
// that were written while a lock on any part of the file is held (nfs_can_extend_write in
// fs/nfs/write.c). One byte that no file reaches is enough. The lock need not exclude anybody, so
// it also works where locks do not leave the node (the mount options nolock and local_lock). Taking
// it, once more too, makes the client forget the pages and the size that it has kept (do_setlk in
// fs/nfs/file.c); opening the file anew through /proc does not.
#pragma once

#include <atomic>
#include <string>

#include "base/result.h"
#include "store/subfile/posix_subfile.h"

namespace shima {

class FarLock {
 public:
  // For descriptors opened with `flags` of a file at `path`. If it is not `needed`, a file system
  // without locks is none the worse.
  FarLock(FileSystemCalls& calls, int flags, bool needed, const std::string& path)
      : calls_(calls), flags_(flags), needed_(needed), path_(path) {}

  [[nodiscard]] bool held() const { return held_; }
  // Takes the lock, whether or not it is held already; the caller sees that one thread does it at a
  // time. Waits while another process holds a lock on the whole file, for a minute at most.
  [[nodiscard]] Status take(int fd);
  // Does nothing if it is not held.
  void release(int fd);

 private:
  [[nodiscard]] struct flock range();
  [[nodiscard]] std::unexpected<Error> failure(int sys_errno) const;

  FileSystemCalls& calls_;
  int flags_;
  bool needed_;
  const std::string& path_;
  off_t own_byte_ = 0;
  std::atomic<bool> held_ = false;
};

}  // namespace shima
