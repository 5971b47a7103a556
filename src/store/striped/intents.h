// Operations that change more than one file: recorded in the master file, carried out, and the
// record taken out again. A killed one is finished by whoever finds the record.
#pragma once

#include <string>

#include "layout/master_file.h"
#include "store/target/directory_lock.h"

namespace shima {

// The caller has the directory's lock, and `path` is the file's own, not a link's.

// Has the file say this; what it says outlives the machine's end, and a kill leaves what it said
// before or this. The file is replaced by one that has its owner, permissions and access control
// lists, or, where that may not be done, changed in place.
[[nodiscard]] Status put_master(const std::string& path, const MasterFile& master);
// The same where what stands there is no master file.
[[nodiscard]] Status put_master_over(const std::string& path, const MasterFile& master);

// Does what the intent says, and takes it out of the file; after a RemoveIntent there is no file.
// Several times over it does the same.
[[nodiscard]] Status finish_intent(const std::string& path, MasterFile& master);

// Without a caller's lock: records what is to be done with a striped file, and does it. `path` may
// be a link.
// `only`: nothing is done to another file that has the name by now.
[[nodiscard]] Status carry_out(const std::string& path, const Intent& intent,
                               const FileId* only = nullptr);

}  // namespace shima
