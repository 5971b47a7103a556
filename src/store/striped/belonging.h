// Checks whether the parts that a master file names belong to that file.
//
// Any user can write a text that names another file's id, and cp(1) makes one by accident. So
// before subfiles are opened for writing, truncated, renamed or removed, two checks are made. The
// owner: a part must have the owner of the master file; or the copy of the master file beside the
// part, which must have the part's owner, must name the master file's path. The back reference: if
// that copy names another path, and another master file with the same id exists there, the parts
// belong to that file. If no file exists at the other path, the master file was moved, or its
// directory is mounted elsewhere. Reading needs no check.
#pragma once

#include <sys/stat.h>

#include <string>
#include <vector>

#include "layout/master_file.h"
#include "store/striped/parts.h"
#include "store/target/target.h"

namespace shima {

// A master file that claims parts: its path and, of one open file, its attributes.
struct Claimant {
  std::string path;  // real
  struct stat facts{};
};
// file_in_use if the file at the path does not match `master` (intents are not compared).
[[nodiscard]] Result<Claimant> claimant_at(const std::string& path, const MasterFile& master);

// access_denied, with the reason and what to do, unless the parts of `master` belong to the
// claimant. `master` may have another id than the claimant: that of a file that the claimant
// replaces.
[[nodiscard]] Status check_belonging(const MasterFile& master, const Claimant& claimant,
                                     const std::vector<Target>& targets);
// The same for a caller that has looked at the parts.
[[nodiscard]] Status check_belonging(const MasterFile& master, const Claimant& claimant,
                                     const std::vector<Target>& targets, const PartsSeen& seen);
// The same for the file at the path.
[[nodiscard]] Status check_own_parts(const MasterFile& master, const std::string& path,
                                     const std::vector<Target>& targets);

// Whether the file at `path` is a copy of a master file, or a second name for it, made outside
// Shima: the parts belong to a file with another name.
[[nodiscard]] bool is_second_master(const MasterFile& master, const std::string& path);
[[nodiscard]] bool is_second_master(const MasterFile& master, const std::string& path,
                                    const std::vector<Target>& targets);

}  // namespace shima
