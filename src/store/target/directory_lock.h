// The lock of a directory, held while master files in it change. The master files themselves cannot
// be locked, because they are replaced.
//
// It is an fcntl lock (of the open file, F_OFD_SETLK) on the file .shima/.lock, which works between
// nodes if the file system supports locks. Users who may write the directory, or a striped file in
// it, may open that file, and no others: a user with read permission only must not block others.
// The holder writes its identity into the file, for the error message of a process whose wait times
// out. A program's own lock on the directory (flock .) does not interfere.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "store/subfile/file_tree.h"

namespace shima {

// How long to wait for another process: SHIMA_LOCK_TIMEOUT, in seconds.
[[nodiscard]] std::chrono::seconds lock_timeout();

// Not recursive. The timeout is lock_timeout().
class DirectoryLock {
 public:
  // A directory without striped files has no lock file; then `leave` takes no lock.
  using IfUnused = FileTree::IfUnused;

  // `path`: of a file in the directory. timed_out after the timeout; the error names the holder.
  [[nodiscard]] static Result<DirectoryLock> take(const std::string& path,
                                                  IfUnused unused = IfUnused::make);
  // file_in_use if another process holds it.
  [[nodiscard]] static Result<DirectoryLock> try_take(const std::string& path,
                                                      IfUnused unused = IfUnused::make);
  // For two files that may be in one directory. The locks are taken in a fixed order, so that
  // processes that lock the same two do not deadlock.
  [[nodiscard]] static Result<DirectoryLock> take_both(const std::string& a, const std::string& b);

  // For a change of plain files, which needs the lock only so that no striped file gets one of the
  // names meanwhile: no lock where there is none to take, or where this user may not take it. An
  // error while another process holds it.
  [[nodiscard]] static Result<DirectoryLock> take_for_plain(const std::string& path);
  [[nodiscard]] static Result<DirectoryLock> take_both_for_plain(const std::string& a,
                                                                 const std::string& b);

  // Permits users who may write the file at `path` to take the lock from then on, as far as we may.
  void admit_writers_of(const std::string& path) const;

 private:
  DirectoryLock() = default;
  using Take = Result<DirectoryLock> (*)(const std::string& path);
  [[nodiscard]] static Result<DirectoryLock> take_both_by(Take take_one, const std::string& a,
                                                          const std::string& b);

  std::unique_ptr<DirectoryHold> hold_;
  std::unique_ptr<DirectoryHold> second_;
};

// FileTree::try_lock for a directory of this machine.
[[nodiscard]] Result<std::unique_ptr<DirectoryHold>> try_lock_here(const std::string& path,
                                                                   FileTree::IfUnused unused);

}  // namespace shima
