// A subfile with direct I/O (O_DIRECT), as requested by the hints direct_read and direct_write.
//
// The kernel accepts such transfers only in whole blocks, from aligned memory. So a transfer has
// three parts: an edge at each end, which uses a buffered descriptor, and the whole blocks between
// them, which bypass the page cache, through an aligned buffer if the caller's memory is not
// aligned. No block is ever read to be written back. Two members that write different parts of one
// block both use the page cache there. If the file system refuses a direct transfer, it goes
// through the page cache.
#pragma once

#include <cstdint>
#include <memory>

#include "store/subfile/subfile.h"

namespace shima {

// Powers of two, of one file.
struct DirectAlignment {
  // Alignment of the offsets and lengths of direct transfers. At least a page: if one member writes
  // a part of a page directly and another through the page cache, bytes of one of them are lost.
  std::uint64_t block_bytes = 4096;
  std::uint64_t memory_bytes = 4096;  // alignment of the address of each piece
  std::uint64_t piece_bytes = 4096;   // alignment of the length of each piece
};

// Of an open file, as reported by statx(2) (STATX_DIOALIGN, Linux 6.1), or derived from the block
// size.
[[nodiscard]] DirectAlignment direct_alignment(int fd);

struct DirectTransfers {
  bool read = false;
  bool write = false;
};

// `direct` is open with O_DIRECT, `buffered` without; both refer to one file.
[[nodiscard]] std::unique_ptr<Subfile> make_direct_subfile(std::unique_ptr<Subfile> buffered,
                                                           std::unique_ptr<Subfile> direct,
                                                           DirectTransfers transfers,
                                                           const DirectAlignment& alignment);

}  // namespace shima
