// Moves an agent's window to or from the file: only the requested bytes, in runs of maximal length.
#pragma once

#include <cstddef>
#include <span>

#include "collective/window/coverage.h"
#include "collective/window/path_context.h"
#include "collective/window/walk.h"

namespace shima {

// Reading a gap this long from the page cache takes about as long as another system call.
inline constexpr std::uint64_t sieve_gap_bytes = 16 * 1024;

class WindowIo {
 public:
  explicit WindowIo(const PathContext& context) : context_(context) {}

  // Starts a window, with no byte marked.
  void begin(const Window& window);
  // The members' bytes in the window; a read may take bytes between them too.
  void mark(std::span<MemberWalk* const> members);
  void mark(const Coverage& runs) { coverage_.add(runs); }
  [[nodiscard]] const Window& window() const { return window_; }

  // Writes the marked bytes and no others; data[0] is the window's first byte.
  [[nodiscard]] Status write_marked(const std::byte* data);
  // Writes runs of the window that are elsewhere, after begin_write().
  void begin_write();
  [[nodiscard]] Status write(TargetOffset begin, std::span<const iovec> run);
  // Reads the marked bytes, and small gaps between them; returns the end of the subfile, or the
  // window's end if the subfile continues beyond it.
  [[nodiscard]] Result<TargetOffset> read_marked(std::byte* data);
  // The window in the page cache, if all of it can be sent from there (see Subfile::view).
  [[nodiscard]] std::unique_ptr<FileView> view();
  // The end of the logical file that read_marked found.
  [[nodiscard]] FileOffset end_of_file() const { return end_of_file_; }

 private:
  [[nodiscard]] bool write_mapped(const std::byte* data);

  const PathContext& context_;
  Window window_;
  FileOffset end_of_file_ = no_end_of_file;
  Coverage coverage_;
};

}  // namespace shima
