// A thread of Shima inside a user's program: it blocks all signals, so that the program's handlers
// run only in the program's own threads.
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
