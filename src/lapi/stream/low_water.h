// How much of a large message has to be there before its receiver is woken (SO_RCVLOWAT).
//
// A receiver that is woken for each segment takes a large message in many small parts. Besides, the
// kernel acknowledges what is below the mark as it comes, but of what is above it often only what
// the receiver has taken (Linux, __tcp_ack_snd_check): without a mark the sender hears of bytes
// late and in lumps, and a sender that is paced by the rate of what is acknowledged (BBR) remains
// slow. A mark stops nothing: the kernel also wakes when its buffer is nearly full, and at the end
// of the connection.
#pragma once

#include <cstddef>

namespace shima::lapi {

// Of one TCP socket. For the one thread that receives.
class LowWater {
 public:
  // So much of a message has not come yet; 0: its end has. A system call if that changes the mark.
  void expect(int socket, std::size_t rest_bytes) {
    const int mark = rest_bytes >= high ? high : rest_bytes >= low ? low : none;
    if (mark != mark_) set(socket, mark);
  }

 private:
  static constexpr int none = 1;
  static constexpr int low = 64 << 10;
  static constexpr int high = 128 << 10;

  void set(int socket, int mark);

  int mark_ = none;
};

}  // namespace shima::lapi
