// The bytes of a window in the messages of guests, to be written from there: large pieces need no
// copy in the window.
#pragma once

#include <sys/uio.h>

#include <vector>

#include "base/function_ref.h"
#include "collective/guests.h"

namespace shima {

class GuestPieces {
 public:
  // Keeps the message; an error if it does not have the bytes of its runs.
  [[nodiscard]] Status add(GuestMessage message);
  [[nodiscard]] std::size_t count() const { return messages_.size(); }
  void clear();

  // Puts the pieces into the order of the file; false if a byte is in several of them.
  [[nodiscard]] bool arrange();
  // Calls visit(begin, pieces) for each maximal run, after arrange().
  [[nodiscard]] Status for_each_run(
      FunctionRef<Status(TargetOffset, std::span<const iovec>)> visit) const;
  // Copies them into the window's image instead.
  [[nodiscard]] Status unpack(TargetRange window, std::byte* image) const;

 private:
  struct Piece {
    TargetRange range;
    std::byte* data = nullptr;
  };

  std::vector<GuestMessage> messages_;
  std::vector<Piece> pieces_;
};

}  // namespace shima
