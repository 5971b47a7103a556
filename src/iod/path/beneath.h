// Paths below a directory that is served, none of which leads out of it.
//
// A path is resolved by openat2(2) with RESOLVE_BENEATH, so that neither ".." nor a link escapes.
// Further calls go through the descriptor, by a path in /proc, and resolve at most one name more,
// without following a link.
//
// The path of the directory itself has no links when the node starts, and is opened without
// following any: it may lie below another directory that is served, where a client makes links.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace shima::iod {

// Valid while it lives.
struct PathBeneath {
  UniqueFd fd;
  std::string path;  // "/proc/self/fd/7", or "/proc/self/fd/7/name"
};

// The path of a directory without links; where it does not exist, as it is.
[[nodiscard]] std::string path_without_links(const std::string& directory);
// Opens it, if no link is in its path. `flags`: of open(2).
[[nodiscard]] Result<UniqueFd> open_without_links(const std::string& directory, int flags);

class Beneath {
 public:
  [[nodiscard]] static Result<Beneath> open(const std::string& directory);

  // What the path refers to; links at its end are followed.
  [[nodiscard]] Result<PathBeneath> object(const std::string& path) const;
  // The name at the end of the path, which need not exist, in a directory that does.
  [[nodiscard]] Result<PathBeneath> name(const std::string& path) const;
  // The path without links; "" for the directory itself.
  [[nodiscard]] Result<std::string> real_path(const std::string& path) const;
  // The directory itself as the system knows it.
  [[nodiscard]] Result<std::string> real_path() const { return path_of(fd_.get()); }
  // That of an open file, as the system knows it.
  [[nodiscard]] static Result<std::string> path_of(int fd);

 private:
  explicit Beneath(UniqueFd fd) : fd_(std::move(fd)) {}
  [[nodiscard]] Result<UniqueFd> resolve(const std::string& path) const;

  UniqueFd fd_;
};

}  // namespace shima::iod
