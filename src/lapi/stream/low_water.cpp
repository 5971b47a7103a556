#include "lapi/stream/low_water.h"

#include <sys/socket.h>

namespace shima::lapi {

// Before Linux 4.18 the kernel neither enlarged its buffer for a mark nor woke when it was full.
void LowWater::set(int socket, int mark) {
  if (!is_usable_) return;
  const auto ask_for = [&](int bytes) {
    return ::setsockopt(socket, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes) == 0;
  };
  int buffer_bytes = 0;
  socklen_t len = sizeof buffer_bytes;
  is_usable_ = ask_for(mark) &&
               ::getsockopt(socket, SOL_SOCKET, SO_RCVBUF, &buffer_bytes, &len) == 0 &&
               (mark == none || buffer_bytes >= 2 * mark);
  mark_ = is_usable_ ? mark : none;
  if (!is_usable_) ask_for(none);
}

}  // namespace shima::lapi
