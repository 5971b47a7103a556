// A cursor that consumes a scattered buffer from its beginning.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <span>
#include <vector>

namespace shima {

[[nodiscard]] inline std::uint64_t bytes_in(std::span<const iovec> pieces) {
  std::uint64_t sum = 0;
  for (const iovec& piece : pieces) sum += piece.iov_len;
  return sum;
}

// Passes once over the pieces, which must outlive it; a call must not request more bytes than
// remain.
class PieceCursor {
 public:
  explicit PieceCursor(std::span<const iovec> pieces) : rest_(pieces) {}

  [[nodiscard]] std::vector<iovec> take(std::uint64_t len_bytes) {
    std::vector<iovec> taken;
    advance(len_bytes, [&](const iovec& piece) { taken.push_back(piece); });
    return taken;
  }
  void skip(std::uint64_t len_bytes) {
    advance(len_bytes, [](const iovec&) {});
  }

 private:
  template <class Visit>
  void advance(std::uint64_t len_bytes, Visit visit) {
    while (len_bytes > 0) {
      if (partial_.iov_len == 0) {
        partial_ = rest_.front();
        rest_ = rest_.subspan(1);
      }
      const std::uint64_t len = len_bytes < partial_.iov_len ? len_bytes : partial_.iov_len;
      if (len > 0) visit(iovec{partial_.iov_base, len});
      partial_ = {static_cast<char*>(partial_.iov_base) + len, partial_.iov_len - len};
      len_bytes -= len;
    }
  }

  std::span<const iovec> rest_;
  iovec partial_{};
};

}  // namespace shima
