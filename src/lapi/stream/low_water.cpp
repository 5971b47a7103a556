#include "lapi/stream/low_water.h"

#include <sys/socket.h>
#include <sys/utsname.h>

#include <charconv>
#include <iterator>
#include <utility>

namespace shima::lapi {
namespace {

// Since 5.7 the kernel wakes below the mark if its buffer is full, and since 5.12 if the window is
// closed; before, a receiver might sleep for ever.
bool is_safe() {
  constexpr std::pair first_safe{5U, 12U};
  utsname system{};
  if (::uname(&system) != 0) return false;
  const char* const end = std::end(system.release);
  std::pair version{0U, 0U};
  const char* const dot = std::from_chars(std::begin(system.release), end, version.first).ptr;
  if (dot != end) std::from_chars(dot + 1, end, version.second);
  return version >= first_safe;
}

}  // namespace

void LowWater::set(int socket, int mark) {
  static const bool is_usable = is_safe();
  mark_ = mark;
  if (is_usable) ::setsockopt(socket, SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof mark);
}

}  // namespace shima::lapi
