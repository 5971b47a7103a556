// Whether the parts that a master file names are its own.
//
// Anybody can write a text that names another file's id, and cp(1) makes one by accident. So before
// subfiles are opened for writing, cut, renamed or removed, two things are compared. The owner: a
// part belongs to the owner of the master file, or the copy of the master file beside the part,
// which must have the part's own owner, says the master file's path. The back reference: if that
// copy says another path, and another master file with the same id stands there, the parts are that
// one's. Where nothing stands at the other path, the master file was moved, or its directory is
// mounted elsewhere. Reading needs no check.
#pragma once

#include <sys/stat.h>

#include <string>
#include <vector>

#include "layout/master_file.h"
#include "store/target/target.h"

namespace shima {

// A master file that claims parts: where it stands and, of one open file, what is known about it.
struct Claimant {
  std::string path;  // real
  struct stat facts{};
};
// file_in_use if what stands at the path is not what `master` says, but for intents.
[[nodiscard]] Result<Claimant> claimant_at(const std::string& path, const MasterFile& master);

// access_denied, with the reason and what to do, unless the parts of `master` belong to the
// claimant. `master` may have another id than the claimant: a file that it replaces.
[[nodiscard]] Status check_belonging(const MasterFile& master, const Claimant& claimant,
                                     const std::vector<Target>& targets);
// For the file that stands at the path.
[[nodiscard]] Status check_own_parts(const MasterFile& master, const std::string& path,
                                     const std::vector<Target>& targets);

// Whether what stands at `path` is a copy of a master file, or another name for it, made by
// somebody who did not know what that is: the parts are those of a file that has another name.
[[nodiscard]] bool is_second_master(const MasterFile& master, const std::string& path);

}  // namespace shima
