// Targets: the directories that hold subfiles, and how a name in a master file becomes one.
//
// A name means a directory only by the configuration of whoever opens the file: SHIMA_TARGETS, or
// else the file named by SHIMA_TARGETS_FILE, $XDG_CONFIG_HOME/shima/targets, or
// /etc/shima/targets. The name "beside" needs none: it is the folder .shima beside the master file.
// A target directory says in a file of its own which target it is and whose, so that a disk that is
// not mounted, mounted elsewhere, or another user's is not taken for it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "base/units.h"

namespace shima {

inline constexpr std::string_view beside_target = "beside";
inline constexpr const char* target_marker = ".shima-target";  // in every target directory

struct TargetPlace {
  std::string name;
  std::string directory;
  friend bool operator==(const TargetPlace&, const TargetPlace&) = default;
};

// "name=directory:name=directory"; a directory without a name is called by its last part.
[[nodiscard]] Result<std::vector<TargetPlace>> parse_target_list(std::string_view text);
// Lines "name directory", # begins a comment.
[[nodiscard]] Result<std::vector<TargetPlace>> parse_target_file(std::string_view text);
// What this process's environment and files say; empty where nothing does.
[[nodiscard]] Result<std::vector<TargetPlace>> configured_targets();

// An open target directory.
class Target {
 public:
  enum class Purpose { use, create };

  // `master_path`: of the file that names it. To create: the directory is made a target if it is
  // none yet, and it must be writable and have room. Errors name the target, its directory, and the
  // mend.
  [[nodiscard]] static Result<Target> open(const std::string& name, const std::string& master_path,
                                           Purpose purpose);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& directory() const { return directory_; }
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  Target(std::string name, std::string directory, UniqueFd fd)
      : name_(std::move(name)), directory_(std::move(directory)), fd_(std::move(fd)) {}

  std::string name_;
  std::string directory_;
  UniqueFd fd_;
};

// Each of the names once.
[[nodiscard]] Result<std::vector<Target>> open_targets(const std::vector<std::string>& names,
                                                       const std::string& master_path,
                                                       Target::Purpose purpose);
[[nodiscard]] const Target& target_called(const std::vector<Target>& targets,
                                          std::string_view name);

}  // namespace shima
