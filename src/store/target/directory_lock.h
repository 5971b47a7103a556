// The lock under which master files in a directory change. Since the files themselves are replaced,
// it is the directory's.
//
// It is a lock by fcntl (of the open file, F_OFD_SETLK) on the file .shima/.lock, which works
// between nodes where the file system has locks at all. Who may write the directory may open that
// file, and whoever may write a striped file in it, and nobody else: to be able to read is not
// enough to block anybody. The holder writes into it who it is, for those who wait in vain.
// A program's own lock on the directory (flock .) is its own affair.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace shima {

// Not recursive. How long to wait: SHIMA_LOCK_TIMEOUT, in seconds.
class DirectoryLock {
 public:
  // Where nothing striped was ever made, there is no lock file, and leave takes nothing.
  enum class IfUnused { make, leave };

  // `path`: of a file in the directory. timed_out if the time is up; the error names the holder.
  [[nodiscard]] static Result<DirectoryLock> take(const std::string& path,
                                                  IfUnused unused = IfUnused::make);
  // file_in_use if somebody else has it.
  [[nodiscard]] static Result<DirectoryLock> try_take(const std::string& path,
                                                      IfUnused unused = IfUnused::make);
  // For two files that may be in one directory. Processes that lock the same two do not wait for
  // each other in a circle.
  [[nodiscard]] static Result<DirectoryLock> take_both(const std::string& a, const std::string& b);

  // Lets those who may write the file at `path` take the lock from now on, as far as we may.
  void admit_writers_of(const std::string& path) const;

 private:
  DirectoryLock() = default;
  UniqueFd fd_;
  UniqueFd second_;
};

}  // namespace shima
