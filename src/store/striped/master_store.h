// Master files on disk, and the subfiles that belong to them: creating, reading, changing,
// removing.
//
// A master file appears and changes by a rename, so that a reader sees the old or the new one. What
// spans several subfiles is written into it first, as an intent; whoever opens the file finds the
// intent and finishes what it says, under a lock. Beside its subfiles every target keeps a copy of
// the master file and its name, from which `shima fsck` can rebuild one that was overwritten.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "layout/master_file.h"
#include "store/subfile/subfile.h"

namespace shima {

struct StripedCreate {
  std::string path;
  std::vector<StripedRegion> regions;
  unsigned permissions = 0666;  // before the umask
  bool exclusive = false;       // an error if the path exists; else that file is left as it is
};

// All targets are examined, and all subfiles made, before the name appears. Blocks; local.
[[nodiscard]] Status create_striped(const StripedCreate& request);

// The master file at a path; nothing if what is there is no master file, or nothing is there. What
// may be one and may not be read is access_denied. `facts`: those of the file that was read.
[[nodiscard]] Result<std::optional<MasterFile>> read_master(const std::string& path,
                                                            struct stat* facts = nullptr);

// The same, after finishing what its intent says.
[[nodiscard]] Result<std::optional<MasterFile>> read_settled_master(const std::string& path);

// The same for whoever wants the bytes: where nothing but tidying up is left of an operation, and
// that cannot be done (no permission, a target that is gone), they are where the file says.
[[nodiscard]] Result<std::optional<MasterFile>> read_openable_master(const std::string& path);

struct SubfilesOpen {
  std::string path;  // of the master file
  bool read = false;
  bool write = false;
  bool direct_read = false;
  bool direct_write = false;
  std::optional<bool> close_to_open = {};
};
// `standing`: what the file at the path says, which is another than `master` where that one's
// subfiles are to replace it. To write, the subfiles must belong to that file (see belonging.h).
[[nodiscard]] Result<std::vector<std::unique_ptr<Subfile>>> open_subfiles(
    const MasterFile& master, const SubfilesOpen& request, const MasterFile& standing);

// Has the name and the description of a file, and the names of its parts, outlive the machine's
// end.
[[nodiscard]] Status sync_master(const MasterFile& master, const std::string& path);

// Sets the logical size; file_in_use if another file than `only` has the name by now.
[[nodiscard]] Status truncate_striped(const std::string& path, std::uint64_t size_bytes,
                                      const FileId* only = nullptr);

// Removes a file of any kind by name: a striped one with its subfiles, unless the name is a second
// one.
[[nodiscard]] Status remove_file(const std::string& path);

[[nodiscard]] std::string subfile_name(const FileId& id, int index);

// rename(2) for files of any kind: a striped one keeps its subfiles, one whose place is taken loses
// them. Another file system is an error (EXDEV), also where only subfiles beside the file lie on
// another one. A kill leaves the old name or the new.
[[nodiscard]] Status rename_file(const std::string& from, const std::string& to);

// Has the copies of a master file learn its name, where that was changed by somebody else.
[[nodiscard]] Status tell_copies(const std::string& path);

// chmod(2), with the subfiles: none is ever more open than its master file.
[[nodiscard]] Status set_permissions(const std::string& path, unsigned mode);

}  // namespace shima
