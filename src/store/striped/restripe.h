// Gives a striped file other subfiles.
//
// The bytes are copied to new subfiles under a new id; then one rename replaces the master file by
// one that names these and, as an intent, the old ones to be removed. The progress of the copy is
// recorded beside the first old subfile, in <id>.restripe: a second call with the same regions
// continues from there, one with other regions starts again. No process may write meanwhile: a read
// lease on each old subfile (fcntl(2), F_SETLEASE) reveals writers and blocks new ones for the
// moment that the restripe needs to give up. Leases reveal only this node's writers, so a restripe
// is refused if another node could write, and if the file system has no leases.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "layout/master_file.h"
#include "store/striped/copy_data.h"
#include "store/target/target.h"

namespace shima {

struct RestripeRequest {
  std::string path;
  std::vector<StripedRegion> regions;
  // The most bytes that a kill may cost: the copy is synced and its progress recorded this often.
  std::uint64_t record_bytes = std::uint64_t{256} << 20;
};

// file_in_use if another process writes; recorded progress is kept, and if there is none no file is
// left. A file that already has these regions is left unchanged.
[[nodiscard]] Status restripe(const RestripeRequest& request, const CopyProgress& progress);

// The file that an unfinished restripe makes of `master`; nothing if there is none. `path`: of
// `master`.
struct UnfinishedRestripe {
  MasterFile goal;
  FileOffset done;          // copied up to here,
  std::uint64_t stamp = 0;  // while the old subfiles looked like this
};
[[nodiscard]] Result<std::optional<UnfinishedRestripe>> unfinished_restripe(
    const MasterFile& master, const std::string& path);

// The target that holds the record, and the write of the record.
[[nodiscard]] Result<Target> home_of_restripe_record(const MasterFile& master,
                                                     const std::string& path);
[[nodiscard]] Status write_restripe_record(const Target& home, const MasterFile& source,
                                           const UnfinishedRestripe& record);

// Removes the files that a restripe has created. The caller holds the directory's lock.
[[nodiscard]] Status drop_restripe(const MasterFile& master, const std::string& path);
// The same for a caller that has read the record.
[[nodiscard]] Status drop_restripe(const MasterFile& master, const std::string& path,
                                   const Target& home, const Result<std::string>& record);

}  // namespace shima
