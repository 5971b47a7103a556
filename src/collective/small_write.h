// Writes of few bytes in several pieces, which the members of a node leave with their messages for
// one of them to make.
//
// A member packs the places of its pieces and their bytes. Another one of the node collects what
// all there have left, sorts the pieces by their place in the file, and writes those that follow
// each other at once. So the members together make one system call where each would make several,
// and wait for one meeting instead of three. A member whose pieces overlap, or are not in file
// order, leaves none: they would have to be written in its order.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "base/result.h"
#include "base/units.h"
#include "pattern/pattern.h"

namespace shima {

// Whether a write of these bytes of a file is one to leave to another task of one space, or
// process.
[[nodiscard]] bool is_small_write(const Slice& file, bool one_space);
// Its pieces and bytes; `memory` has addresses. `out` is overwritten.
void pack_small_write(const Slice& file, const Slice& memory, std::vector<std::byte>& out);

// What several members have left.
class SmallWrites {
 public:
  // The pieces of one member, whose bytes stay where they are; nothing if it has left none.
  [[nodiscard]] Status add(std::span<const std::byte> packed);
  // Calls write(offset, consecutive pieces) for each run of the file.
  [[nodiscard]] Status write(
      FunctionRef<Status(FileOffset offset, std::span<const iovec> pieces)> write);

 private:
  struct Piece {
    std::int64_t offset = 0;
    std::span<const std::byte> bytes;
  };
  std::vector<Piece> pieces_;
  std::vector<iovec> run_;
};

}  // namespace shima
