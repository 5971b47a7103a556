// Giving a striped file other subfiles.
//
// The bytes are copied to new subfiles under a new id; then the master file is replaced, by one
// rename, by one that names these and, as an intent, that the old ones are to be removed. How far
// the copy has come is kept beside the first old subfile, in <id>.restripe: a second call with the
// same regions goes on from there, one with others begins anew. Nobody may write meanwhile: a read
// lease on each old subfile (fcntl(2), F_SETLEASE) shows writers and makes new ones wait for the
// moment in which the restripe gives up. Leases show this node's writers only, so a restripe is
// refused where another node could write, and where leases cannot be had.
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
  // How much a kill may cost: the copy is synced and its progress recorded this often.
  std::uint64_t record_bytes = std::uint64_t{256} << 20;
};

// file_in_use if somebody writes; what was recorded is kept, and nothing where nothing was. A file
// that has these regions already is left as it is.
[[nodiscard]] Status restripe(const RestripeRequest& request, const CopyProgress& progress);

// The file that a restripe has begun to make of `master`; nothing if none has. `path`: of `master`.
struct UnfinishedRestripe {
  MasterFile goal;
  FileOffset done;          // copied up to here,
  std::uint64_t stamp = 0;  // while the old subfiles looked like this
};
[[nodiscard]] Result<std::optional<UnfinishedRestripe>> unfinished_restripe(
    const MasterFile& master, const std::string& path);

// Where that is recorded, and the recording.
[[nodiscard]] Result<Target> home_of_restripe_record(const MasterFile& master,
                                                     const std::string& path);
[[nodiscard]] Status write_restripe_record(const Target& home, const MasterFile& source,
                                           const UnfinishedRestripe& record);

// Removes what a restripe has made. The caller has the directory's lock.
[[nodiscard]] Status drop_restripe(const MasterFile& master, const std::string& path);

}  // namespace shima
