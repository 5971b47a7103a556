// Small text files that readers see whole or not at all.
//
// A text is written to a draft beside its goal, under a unique name (.NAME.shima-XXXXXXXX), and
// then given the goal's name by a link or a rename. A draft left by a killed process has no
// meaning; fsck removes it.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"
#include "layout/master_file.h"

namespace shima {

// The error of the last system call.
[[nodiscard]] std::unexpected<Error> failed(std::string_view doing, const std::string& what);

[[nodiscard]] Result<FileId> new_id();

[[nodiscard]] Status write_all(int fd, std::string_view text, const std::string& path);
// Writes `name` in the directory `directory_fd`, whole or not at all. An existing file is replaced
// by one with the same owner and permissions, or, if that is not permitted, overwritten; `mode` is
// for a new file, before the umask or independent of it.
enum class Umask { heeded, ignored };
[[nodiscard]] Status write_whole(int directory_fd, const std::string& name, std::string_view text,
                                 mode_t mode, const std::string& path, Umask umask = Umask::heeded);

// On this machine; tree_at() knows other places too.
[[nodiscard]] Status sync_file(const std::string& path);
[[nodiscard]] Status sync_directory_here(const std::string& path_of_file);

// Whether a name is a draft's, and the name of its goal, or the beginning of a goal name that is
// too long.
[[nodiscard]] bool is_draft_name(std::string_view name);
[[nodiscard]] std::string goal_of_draft(std::string_view name);
[[nodiscard]] bool is_draft_of(std::string_view name, std::string_view goal);

// Whether `fd` could be given the owner, group, permissions, access control lists and other
// attributes of `model`.
[[nodiscard]] bool make_like(int fd, int model);

// A file under a temporary name, in the directory where it is to appear.
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

  // Gives it the name if no file has it yet; file_exists otherwise.
  [[nodiscard]] Status appear(const std::string& path) const;
  // Replaces the file that has the name; the change survives a machine failure. False if that is
  // not permitted, or, with must_be, if the draft cannot be given the attributes of the old file.
  enum class Likeness { must_be, as_far_as_we_may };
  [[nodiscard]] Result<bool> replace(const std::string& path, Likeness likeness);

 private:
  Draft() = default;
  std::string path_;
  UniqueFd fd_;
};

}  // namespace shima
