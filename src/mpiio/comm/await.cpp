#include "mpiio/comm/await.h"

#include <fmt/format.h>
#include <sched.h>
#include <time.h>

#include <algorithm>

#include "base/clock.h"
#include "mpiio/comm/real_mpi.h"

namespace shima {

void Rest::rest() {
  constexpr int yields = 20;
  constexpr int looks_per_doubling = 10;  // a step of a collective call waits for a poll
  constexpr int longest_doubling = 5;
  constexpr long shortest_sleep_ns = 20'000;
  constexpr timespec prompt_sleep{0, 10'000};  // the kernel adds up to 50 us
  if (looks_++ < yields) {
    sched_yield();
    return;
  }
  if (pace_ == Pace::prompt) {
    nanosleep(&prompt_sleep, nullptr);
    return;
  }
  const int doublings = (looks_ - yields) / looks_per_doubling;
  const timespec pause{0, shortest_sleep_ns << std::min(doublings, longest_doubling)};
  nanosleep(&pause, nullptr);
}

Status checked(int mpi_code, const char* doing) {
  if (mpi_code == MPI_SUCCESS) return {};
  char text[MPI_MAX_ERROR_STRING] = "";
  int len = 0;
  PMPI_Error_string(mpi_code, text, &len);
  return fail(Code::internal, fmt::format("{}: MPI says: {}", doing, text));
}

Status await(MPI_Request& request, const char* doing, const Peers& peers) {
  constexpr auto check_period = std::chrono::milliseconds(100);
  Rest pause;
  int done = 0;
  auto next_check = Clock::now() + check_period;
  while (true) {
    SHIMA_TRY(checked(SHIMA_REAL(Test)(&request, &done, MPI_STATUS_IGNORE), doing));
    if (done != 0) return {};
    pause.rest();
    if (!peers || Clock::now() < next_check) continue;
    SHIMA_TRY(peers());
    next_check = Clock::now() + check_period;
  }
}

}  // namespace shima
