// Between an agent's window and the file: only what members asked for, in runs as long as they
// come.
#pragma once

#include <cstddef>

#include "collective/coverage.h"
#include "collective/job.h"
#include "region/copy.h"

namespace shima {

class WindowIo {
 public:
  explicit WindowIo(const Job& job) : job_(job) {}

  // Starts a window; nothing is marked.
  void begin(FileRange window);
  void mark(const Strip& strip) { coverage_.mark(strip); }
  void mark(const StripPair& pair) {
    coverage_.mark({pair.a_offset, pair.len_bytes, pair.a_stride_bytes, pair.count});
  }
  [[nodiscard]] FileRange window() const { return window_; }

  // Writes the marked bytes and no others; `data` holds the window from its beginning.
  [[nodiscard]] Status write_marked(const std::byte* data);
  // Reads the marked bytes, and small gaps between them; returns where the file ended, or the
  // window's end if it reached beyond.
  [[nodiscard]] Result<FileOffset> read_marked(std::byte* data);

 private:
  const Job& job_;
  FileRange window_;
  Coverage coverage_;
};

}  // namespace shima
