// Targets: the directories that hold subfiles, and the mapping from a name in a master file to one
// of them.
//
// Only the configuration of the process that opens the file maps a name to a directory:
// SHIMA_TARGETS, or else the file named by SHIMA_TARGETS_FILE, $XDG_CONFIG_HOME/shima/targets, or
// /etc/shima/targets. The name "beside" needs no configuration: it is the directory .shima beside
// the master file. A place "iod://HOST:PORT/NAME" is a target of an I/O node (store/remote). A
// target directory contains a file that identifies the target and its owner, so that an unmounted
// disk, one mounted elsewhere, or another user's is detected.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "store/subfile/file_tree.h"
#include "store/subfile/target_files.h"

namespace shima {

inline constexpr std::string_view beside_target = "beside";
inline constexpr const char* target_marker = ".shima-target";  // in every target directory

struct TargetPlace {
  std::string name;
  std::string directory;  // or a place on an I/O node
  friend bool operator==(const TargetPlace&, const TargetPlace&) = default;
};

// "name=directory:name=directory"; without a name, the last part of the path is the name. The
// colons of "iod://HOST:PORT" separate nothing.
[[nodiscard]] Result<std::vector<TargetPlace>> parse_target_list(std::string_view text);
// Lines "name directory", # begins a comment.
[[nodiscard]] Result<std::vector<TargetPlace>> parse_target_file(std::string_view text);
// The targets configured for this process; empty if there are none.
[[nodiscard]] Result<std::vector<TargetPlace>> configured_targets();

// The file with the key of I/O nodes: SHIMA_IOD_KEY, or else iod.key beside the list of targets, or
// where a list would be.
[[nodiscard]] Result<std::string> iod_key_file();

// An open target directory.
class Target {
 public:
  enum class Purpose { use, create };

  // `master_path`: of the file that names the target. When a file is created, a directory that is
  // not yet a target becomes one; it must be writable and have free space. Errors name the target,
  // its directory, and the remedy.
  [[nodiscard]] static Result<Target> open(const std::string& name, const std::string& master_path,
                                           Purpose purpose);

  // The same for a place that need not be configured; it is not "beside".
  [[nodiscard]] static Result<Target> open_at(const TargetPlace& place, Purpose purpose);
  // The same in a directory that was opened for reading.
  [[nodiscard]] static Result<Target> open_in(const TargetPlace& place, UniqueFd directory,
                                              Purpose purpose);

  // As open() and open_at(), but an I/O node is not asked for the target: that is a step which
  // precedes those on its files, and `refusal` the error if it fails.
  [[nodiscard]] static Result<Target> find(const std::string& name, const std::string& master_path,
                                           Purpose purpose);
  [[nodiscard]] static Result<Target> find_at(const TargetPlace& place, Purpose purpose);
  [[nodiscard]] bool is_asked() const { return is_asked_; }
  [[nodiscard]] static TargetFiles::Step asking_step(Purpose purpose);
  [[nodiscard]] std::unexpected<Error> refusal(const Error& why) const;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& directory() const { return directory_; }
  [[nodiscard]] TargetFiles& files() const { return *files_; }
  [[nodiscard]] std::shared_ptr<TargetFiles> shared_files() const { return files_; }
  // For targets on this machine, such as those beside a file; else -1.
  [[nodiscard]] int directory_fd() const { return files_->directory_fd(); }
  // Attributes of the directory.
  [[nodiscard]] Result<struct stat> facts() const;

 private:
  Target(std::string name, std::string directory, std::shared_ptr<TargetFiles> files,
         bool is_asked = true)
      : name_(std::move(name)),
        directory_(std::move(directory)),
        files_(std::move(files)),
        is_asked_(is_asked) {}

  std::string name_;
  std::string directory_;
  std::shared_ptr<TargetFiles> files_;
  bool is_asked_;
};

// FileTree::files_beside for a file of this machine. `shown`: the path in messages, if `path` goes
// through a descriptor.
[[nodiscard]] Result<std::shared_ptr<TargetFiles>> files_beside_here(const std::string& path,
                                                                     FileTree::BesideFiles how,
                                                                     const std::string& shown);

// The names without duplicates; I/O nodes are asked at once.
[[nodiscard]] Result<std::vector<Target>> open_targets(const std::vector<std::string>& names,
                                                       const std::string& master_path,
                                                       Target::Purpose purpose);
// The same with Target::find(), to use them.
[[nodiscard]] Result<std::vector<Target>> find_targets(const std::vector<std::string>& names,
                                                       const std::string& master_path);
// Whether the name is one file in both; false if it is in one of them only.
[[nodiscard]] bool is_same_file(const Target& a, const Target& b, const std::string& name);
[[nodiscard]] const Target& target_called(const std::vector<Target>& targets,
                                          std::string_view name);

}  // namespace shima
