// Master files on disk and the subfiles that belong to them: create, read, change, remove.
//
// A master file appears and changes by a rename, so that a reader sees the old or the new one. An
// operation on several subfiles is first written into it as an intent; the next process that opens
// the file finds the intent and finishes it, under a lock. Beside its subfiles every target keeps a
// copy of the master file and its path, from which `shima fsck` can rebuild an overwritten master
// file.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "layout/master_file.h"
#include "store/subfile/subfile.h"
#include "store/subfile/target_files.h"

namespace shima {

struct StripedCreate {
  std::string path;
  std::vector<StripedRegion> regions;
  unsigned permissions = 0666;  // before the umask
  bool exclusive = false;       // an existing path is an error; else that file is left unchanged
};

// Examines all targets and creates all subfiles before the name appears. Blocks; local.
[[nodiscard]] Status create_striped(const StripedCreate& request);

// The master file at a path; nothing if the path does not exist or is not a master file. A file
// that may be a master file but cannot be read is access_denied. `facts`: attributes of the file
// read.
[[nodiscard]] Result<std::optional<MasterFile>> read_master(const std::string& path,
                                                            struct stat* facts = nullptr);

// The same, after finishing its intent.
[[nodiscard]] Result<std::optional<MasterFile>> read_settled_master(const std::string& path,
                                                                    struct stat* facts = nullptr);

// The same for callers that need the bytes. If only the cleanup of an operation is pending and it
// cannot be done (no permission, a missing target), this is no error: the bytes are where the
// master file says.
[[nodiscard]] Result<std::optional<MasterFile>> read_openable_master(const std::string& path,
                                                                     struct stat* facts = nullptr);

struct SubfilesOpen {
  std::string path;  // of the master file
  bool read = false;
  bool write = false;
  bool direct_read = false;
  bool direct_write = false;
  std::optional<bool> close_to_open = {};
};
// `standing`: the master file at the path; it differs from `master` if the subfiles of `master` are
// to replace its own. To write, the subfiles must belong to that file (see belonging.h).
[[nodiscard]] Result<std::vector<std::unique_ptr<Subfile>>> open_subfiles(
    const MasterFile& master, const SubfilesOpen& request, const MasterFile& standing);

// Syncs the name and the description of a file, and the names of its parts, so that they survive a
// machine failure.
[[nodiscard]] Status sync_master(const MasterFile& master, const std::string& path);

// Sets the logical size; file_in_use if another file than `only` has the name.
[[nodiscard]] Status truncate_striped(const std::string& path, std::uint64_t size_bytes,
                                      const FileId* only = nullptr);

// Whether `name` itself, and no link to it, is the only name of a file that begins like a master
// file. False where that cannot be found out. Allocates nothing.
[[nodiscard]] bool is_only_name_of_striped(const char* name);

// Removes a file of any kind by name: a striped one with its subfiles, unless the name is a second
// name of it.
[[nodiscard]] Status remove_file(const std::string& path);

[[nodiscard]] std::string subfile_name(const FileId& id, int index);

// rename(2) for files of any kind: a striped file keeps its subfiles, a replaced one loses them. A
// rename to another file system is an error (EXDEV), also if only the subfiles beside the file are
// on another one. A kill leaves the old name or the new.
[[nodiscard]] Status rename_file(const std::string& from, const std::string& to);

// Updates the path in the copies of a master file that was renamed outside Shima.
[[nodiscard]] Status tell_copies(const std::string& path);

// chmod(2) for the file and its subfiles: no subfile ever permits more than its master file.
[[nodiscard]] Status set_permissions(const std::string& path, unsigned mode);

// utimensat(2) for the file and its subfiles, of which the latest times count.
[[nodiscard]] Status set_times(const std::string& path, const FileTimes& times);

}  // namespace shima
