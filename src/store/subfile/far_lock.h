// A lock that makes an NFS client send only the written bytes, and fetch what other nodes wrote.
//
// Linux's NFS client sends a whole page if the page is up to date in its cache or beyond the end of
// file that it knows, and so overwrites bytes that other nodes have written there. It sends only
// the written bytes while a lock on any part of the file is held (nfs_can_extend_write in
// fs/nfs/write.c). One byte beyond the end of any file is enough. The lock need not exclude any
// process, so it also works where locks do not leave the node (the mount options nolock and
// local_lock). Taking the lock, also again, makes the client drop its cached pages and file size
// (do_setlk in fs/nfs/file.c); opening the file again through /proc does not.
#pragma once

#include <atomic>
#include <string>

#include "base/result.h"
#include "store/subfile/posix_subfile.h"

namespace shima {

class FarLock {
 public:
  // For descriptors opened with `flags` of a file at `path`. Unless `needed`, a file system without
  // locks is no error.
  FarLock(FileSystemCalls& calls, int flags, bool needed, const std::string& path)
      : calls_(calls), flags_(flags), needed_(needed), path_(path) {}

  [[nodiscard]] bool held() const { return held_; }
  // Takes the lock for a descriptor; the lock of another one ends when that is closed. The caller
  // serialises calls. Waits for at most one minute while another process holds a lock on the whole
  // file.
  [[nodiscard]] Status take(int fd);
  // Takes it again if this descriptor holds it.
  [[nodiscard]] Status take_again(int fd);
  // Does nothing if the lock is not held.
  void release(int fd);

 private:
  [[nodiscard]] bool shared() const;
  [[nodiscard]] Status lock(int fd, off_t byte);
  [[nodiscard]] std::unexpected<Error> failure(int sys_errno) const;

  FileSystemCalls& calls_;
  int flags_;
  bool needed_;
  const std::string& path_;
  off_t byte_ = 0;
  std::atomic<bool> held_ = false;
};

}  // namespace shima
