// Between an agent's window and the file: only what members asked for, in runs as long as they
// come.
#pragma once

#include <cstddef>

#include "collective/coverage.h"
#include "collective/path_context.h"
#include "collective/walk.h"
#include "pattern/copy.h"

namespace shima {

// Reading a gap this long from the page cache takes about as long as another system call.
inline constexpr std::uint64_t sieve_gap_bytes = 16 * 1024;

class WindowIo {
 public:
  explicit WindowIo(const PathContext& context) : context_(context) {}

  // Starts a window; nothing is marked.
  void begin(const Window& window);
  void mark(const Strip& strip) { coverage_.mark(strip); }
  void mark(const StripPair& pair) {
    coverage_.mark({pair.a_offset, pair.len_bytes, pair.a_stride_bytes, pair.count});
  }
  [[nodiscard]] const Window& window() const { return window_; }

  // Writes the marked bytes and no others; `data` holds the window from its beginning.
  [[nodiscard]] Status write_marked(const std::byte* data);
  // Reads the marked bytes, and small gaps between them; returns where the subfile ended, or the
  // window's end if it reached beyond.
  [[nodiscard]] Result<TargetOffset> read_marked(std::byte* data);
  // Where read_marked found the logical file to end.
  [[nodiscard]] FileOffset end_of_file() const { return end_of_file_; }

 private:
  const PathContext& context_;
  Window window_;
  FileOffset end_of_file_ = no_end_of_file;
  Coverage coverage_;
};

}  // namespace shima
