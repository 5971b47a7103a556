// Small text files that are seen whole or not at all.
//
// A text is written to a draft beside its goal, under a name of its own (.NAME.shima-XXXXXXXX), and
// then given the goal's name by a link or a rename. A draft that a killed process has left means
// nothing; fsck removes it.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"
#include "layout/master_file.h"

namespace shima {

// The error of the system call that has just failed.
[[nodiscard]] std::unexpected<Error> failed(std::string_view doing, const std::string& what);

[[nodiscard]] Result<FileId> new_id();

[[nodiscard]] Status write_all(int fd, std::string_view text, const std::string& path);
[[nodiscard]] Result<std::string> read_up_to(int fd, std::size_t most_bytes,
                                             const std::string& path);
// Writes `name` in the directory `directory_fd`, whole or not at all. What has the name is
// replaced, by a file of the same owner and permissions, or, where we may not make one,
// overwritten; `mode` is for where nothing has it, before the umask or whatever that is.
enum class Umask { heeded, ignored };
[[nodiscard]] Status write_whole(int directory_fd, const std::string& name, std::string_view text,
                                 mode_t mode, const std::string& path, Umask umask = Umask::heeded);

[[nodiscard]] Status sync_file(const std::string& path);
[[nodiscard]] Status sync_directory_of(const std::string& path);

// Also when the program has gone to another directory.
[[nodiscard]] std::string name_from_anywhere(const std::string& path);
// With all links followed. The file must be there.
[[nodiscard]] Result<std::string> real_path_of(const std::string& path);
// With all links of its directory followed: what rename(2) and unlink(2) act on.
[[nodiscard]] Result<std::string> real_name_of(const std::string& path);

// Whether this is how a draft is called, and the name that it was to get, or the beginning of one
// that is too long.
[[nodiscard]] bool is_draft_name(std::string_view name);
[[nodiscard]] std::string goal_of_draft(std::string_view name);
[[nodiscard]] bool is_draft_of(std::string_view name, std::string_view goal);

// Whether `fd` could be made like `model`: owner, group, permissions, access control lists and
// other attributes.
[[nodiscard]] bool make_like(int fd, int model);

// A file that nobody looks for yet, in the directory where it is to appear.
class Draft {
 public:
  [[nodiscard]] static Result<Draft> write(const std::string& path, std::string_view text,
                                           mode_t mode);

  Draft(Draft&& other) noexcept
      : path_(std::exchange(other.path_, {})), fd_(std::move(other.fd_)) {}
  Draft& operator=(Draft&&) = delete;
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  ~Draft();

  // Gives it its name where nothing has it yet; file_exists otherwise.
  [[nodiscard]] Status appear(const std::string& path) const;
  // Takes the place of what has the name, and will still have it if the machine fails. False where
  // that may not be done, or, if it must look like the old one, the draft cannot be made so.
  enum class Likeness { must_be, as_far_as_we_may };
  [[nodiscard]] Result<bool> replace(const std::string& path, Likeness likeness);

 private:
  Draft() = default;
  std::string path_;
  UniqueFd fd_;
};

}  // namespace shima
