// Files by path: everything that Shima does with master files, and with plain files as names, goes
// through this interface, whether the path leads to this machine or to a directory on an I/O node.
//
// Paths are passed as the user wrote them; "iod://HOST:PORT/NAME/..." is one on an I/O node. An
// error names the path and has the errno of the failed call.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/subfile/subfile.h"
#include "store/subfile/target_files.h"

namespace shima {

// The lock of a directory, held while it lives (see directory_lock.h).
class DirectoryHold {
 public:
  virtual ~DirectoryHold() = default;
  // Permits users who may write the file at `path` to take the lock from then on, as far as we may.
  virtual void admit_writers_of(const std::string& path) = 0;
};

class FileTree {
 public:
  enum class Links : std::uint8_t { follow, keep };
  // How a text replaces the file: by one with its owner, permissions and access control lists, or
  // else in place; or by one that is as alike as we may make it.
  enum class Replacing : std::uint8_t { alike, as_far_as_we_may };
  enum class IfUnused : std::uint8_t { make, leave };
  enum class BesideFiles : std::uint8_t { use, create };

  struct Text {
    std::string text;
    struct stat facts{};
  };
  struct Entry {
    std::string name;
    struct stat facts{};  // links are not followed
  };

  virtual ~FileTree() = default;

  [[nodiscard]] virtual Result<struct stat> examine(const std::string& path, Links links) = 0;
  // With all links followed. The file must exist.
  [[nodiscard]] virtual Result<std::string> real_path(const std::string& path) = 0;
  // Without "." and "..", in any order.
  [[nodiscard]] virtual Result<std::vector<Entry>> entries(const std::string& directory) = 0;

  // The text of a master file; nothing if there is no file, or another one. access_denied for a
  // file that may be a master file but cannot be read.
  [[nodiscard]] virtual Result<std::optional<Text>> read_master(const std::string& path) = 0;
  [[nodiscard]] virtual Result<std::string> read_text(const std::string& path,
                                                      std::size_t most_bytes) = 0;
  // The file appears whole; file_exists if there is one. The mode is before the umask.
  [[nodiscard]] virtual Status create_text(const std::string& path, std::string_view text,
                                           mode_t mode) = 0;
  // Replaces a file by a master file's text, which survives a machine failure; a kill leaves the
  // old or the new text.
  [[nodiscard]] virtual Status replace_master(const std::string& path, std::string_view text,
                                              Replacing how) = 0;
  // Whole or not at all, whether or not there is a file (see write_whole).
  [[nodiscard]] virtual Status write_text(const std::string& path, std::string_view text,
                                          mode_t mode) = 0;

  [[nodiscard]] virtual Status remove(const std::string& path) = 0;
  [[nodiscard]] virtual Status rename(const std::string& from, const std::string& to) = 0;
  [[nodiscard]] virtual Status link(const std::string& from, const std::string& to) = 0;
  // A symbolic link with this text, which need not lead anywhere.
  [[nodiscard]] virtual Status make_symlink(const std::string& path, const std::string& text) = 0;
  [[nodiscard]] virtual Result<std::string> read_symlink(const std::string& path) = 0;
  [[nodiscard]] virtual Status make_directory(const std::string& path, mode_t mode) = 0;
  [[nodiscard]] virtual Status remove_directory(const std::string& path) = 0;
  // The directory .shima in it (see remove_own_directory); nothing happens if there is none.
  [[nodiscard]] virtual Status remove_own_directory(const std::string& directory) = 0;
  // Of a regular file or a directory; links are not followed.
  [[nodiscard]] virtual Status set_mode(const std::string& path, mode_t mode) = 0;
  [[nodiscard]] virtual Status set_times(const std::string& path, const FileTimes& times) = 0;
  // Whether this process may create and remove names in it.
  [[nodiscard]] virtual Status check_writable(const std::string& directory) = 0;
  [[nodiscard]] virtual Status sync(const std::string& path) = 0;
  [[nodiscard]] virtual Status sync_directory_of(const std::string& path) = 0;

  // A plain file: `request.path`.
  [[nodiscard]] virtual Result<std::unique_ptr<Subfile>> open(const SubfileOpen& request) = 0;
  // Takes the lock of the directory of `path`. file_in_use if another process holds it; null if
  // there is nothing to lock and none is to be made.
  [[nodiscard]] virtual Result<std::unique_ptr<DirectoryHold>> try_lock(const std::string& path,
                                                                        IfUnused unused) = 0;
  // The files of the directory .shima beside the file at `path`, a real name, which need not exist.
  [[nodiscard]] virtual Result<std::shared_ptr<TargetFiles>> files_beside(const std::string& path,
                                                                          BesideFiles how) = 0;
};

}  // namespace shima
