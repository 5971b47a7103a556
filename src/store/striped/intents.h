// Operations that change several files: recorded in the master file, executed, and then removed
// from the record. If a process is killed, the next process that finds the record finishes the
// operation.
#pragma once

#include <string>

#include "layout/master_file.h"
#include "store/target/directory_lock.h"

namespace shima {

// The caller holds the directory's lock, and `path` names the file itself, not a link.

// Writes `master` to the file. The content survives a machine failure; a kill leaves the old or the
// new content. The file is replaced by one with the same owner, permissions and access control
// lists, or, if that is not permitted, changed in place.
[[nodiscard]] Status put_master(const std::string& path, const MasterFile& master);
// The same for a file that is not a master file.
[[nodiscard]] Status put_master_over(const std::string& path, const MasterFile& master);

// Executes the intent and removes it from the file; after a RemoveIntent the file does not exist.
// Idempotent.
[[nodiscard]] Status finish_intent(const std::string& path, MasterFile& master);

// Takes the lock, records an intent in a striped file, and executes it. `path` may be a link.
// `only`: fails if another file has the name meanwhile.
[[nodiscard]] Status carry_out(const std::string& path, const Intent& intent,
                               const FileId* only = nullptr);

}  // namespace shima
