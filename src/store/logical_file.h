// One contiguous byte stream over the subfiles of a layout.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "layout/layout.h"
#include "store/subfile.h"

namespace shima {

class LogicalFile {
 public:
  // A plain file: one subfile that holds the whole stream.
  explicit LogicalFile(std::unique_ptr<Subfile> subfile);

  [[nodiscard]] Status write(FileOffset offset, std::span<const iovec> pieces);
  // Stops at the end of the file; returns the bytes read.
  [[nodiscard]] Result<std::uint64_t> read(FileOffset offset, std::span<const iovec> pieces);
  [[nodiscard]] Status write(FileOffset offset, const void* data, std::uint64_t len_bytes);
  [[nodiscard]] Result<std::uint64_t> read(FileOffset offset, void* data, std::uint64_t len_bytes);

  [[nodiscard]] bool cached(FileOffset offset);
  // The subfile that holds all metadata of a plain file: its size, its identity.
  [[nodiscard]] Subfile& master() { return *subfiles_.front(); }

 private:
  Layout layout_;
  std::vector<std::unique_ptr<Subfile>> subfiles_;
};

}  // namespace shima
