// The files of a mounted directory of an I/O node, by their paths.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <string>

#include "base/result.h"
#include "base/turn.h"
#include "store/striped/logical_file.h"

namespace shima::fuse {

// An open file.
class FarHandle {
 public:
  // `flags`: of open(2), without those that create or truncate.
  [[nodiscard]] static Result<std::unique_ptr<FarHandle>> open(const std::string& path, int flags);
  FarHandle(const FarHandle&) = delete;
  FarHandle& operator=(const FarHandle&) = delete;
  ~FarHandle() { std::ignore = file_.close(); }

  [[nodiscard]] LogicalFile& file() { return file_; }
  // Appends if the file was opened for that.
  [[nodiscard]] Status write(const void* data, std::uint64_t len_bytes, FileOffset offset);

 private:
  FarHandle(LogicalFile file, int flags) : file_(std::move(file)), flags_(flags) {}

  LogicalFile file_;
  int flags_;
  Turn appending_;
};

// As stat(2) shows it: a striped file is one regular file. All files belong to the mounting user.
[[nodiscard]] Result<struct stat> far_attributes(const std::string& path);
// The same for what the entry of a directory shows; its size may be the master file's.
[[nodiscard]] struct stat as_own(struct stat facts);

// Creates a file, plain or striped by the directory's default; file_exists if the name is taken.
[[nodiscard]] Status make_far_file(const std::string& path, mode_t mode);
[[nodiscard]] Status remove_far_directory(const std::string& path);
// `flags`: of renameat2(2).
[[nodiscard]] Status rename_far(const std::string& from, const std::string& to, unsigned flags);

}  // namespace shima::fuse
