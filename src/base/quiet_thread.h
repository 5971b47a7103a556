// A thread of our own inside somebody else's program: signals are the program's, and none of its
// handlers runs in a thread that it does not know.
#pragma once

#include <signal.h>

#include <thread>
#include <utility>

#include "base/result.h"

namespace shima {

template <class Body>
[[nodiscard]] Result<std::thread> start_quiet_thread(Body body) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  auto started = caught([&]() -> Result<std::thread> { return std::thread(std::move(body)); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

}  // namespace shima
