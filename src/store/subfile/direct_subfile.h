// A subfile whose transfers go past the page cache (O_DIRECT), as the hints direct_read and
// direct_write ask for.
//
// The kernel takes such transfers only in whole blocks. So a transfer is cut in three: an edge at
// either end, which goes through a buffered descriptor, and the whole blocks between them, which
// go to the disk directly, through an aligned buffer where the caller's memory is not aligned.
// Nobody's block is ever read to be written back. Two members that write different parts of one
// block both go through the page cache there. What the file system does not take directly after
// all goes through the page cache.
#pragma once

#include <memory>

#include "store/subfile/subfile.h"

namespace shima {

struct DirectTransfers {
  bool read = false;
  bool write = false;
};

// `direct` is open with O_DIRECT, `buffered` without; both are one file.
[[nodiscard]] std::unique_ptr<Subfile> make_direct_subfile(std::unique_ptr<Subfile> buffered,
                                                           std::unique_ptr<Subfile> direct,
                                                           DirectTransfers transfers);

}  // namespace shima
