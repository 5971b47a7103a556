// A subfile with direct I/O (O_DIRECT), as requested by the hints direct_read and direct_write.
//
// The kernel accepts such transfers only in whole blocks. So a transfer has three parts: an edge at
// each end, which uses a buffered descriptor, and the whole blocks between them, which bypass the
// page cache, through an aligned buffer if the caller's memory is not aligned. No block is ever
// read to be written back. Two members that write different parts of one block both use the page
// cache there. If the file system refuses a direct transfer, it goes through the page cache.
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
