#include "mpiio/mpi/await.h"

#include <fmt/format.h>
#include <sched.h>
#include <time.h>

#include <algorithm>

#include "base/process/exact_sleeps.h"
#include "mpiio/mpi/real_mpi.h"
#include "observe/board.h"

namespace shima {

bool Rest::may_yield() {
  constexpr int least = 20;
  constexpr std::chrono::microseconds least_time(100);
  if (yields_ == 0 && has_core_) begin_ = Clock::now();
  if (yields_ >= least && (!has_core_ || Clock::now() - begin_ >= least_time)) return false;
  ++yields_;
  return true;
}

std::chrono::nanoseconds Rest::next() {
  using std::chrono::microseconds;
  constexpr int sleeps_per_doubling = 10;  // a step of a collective call waits for a poll
  constexpr int longest_doubling = 5;
  constexpr microseconds shortest_sleep(20);
  constexpr microseconds prompt_sleep(50);
  if (sleeps_ == 0 && may_yield()) return {};
  ++sleeps_;
  if (pace_ == Pace::prompt) return prompt_sleep;
  return shortest_sleep * (1 << std::min(sleeps_ / sleeps_per_doubling, longest_doubling));
}

void Rest::rest() {
  const std::chrono::nanoseconds pause = next();
  const timespec sleep{0, static_cast<long>(pause.count())};
  if (pause.count() == 0) {
    sched_yield();
  } else {
    const Asleep asleep;
    const ExactSleeps exact;
    nanosleep(&sleep, nullptr);
  }
}

Status checked(int mpi_code, const char* doing) noexcept {
  if (mpi_code == MPI_SUCCESS) return {};
  char text[MPI_MAX_ERROR_STRING] = "";
  int len = 0;
  PMPI_Error_string(mpi_code, text, &len);
  return caught([&]() -> Status {
    return fail(Code::internal, fmt::format("{}: MPI says: {}", doing, text));
  });
}

Status PeerWatch::check() {
  const bool is_lost = peers_.lost != nullptr && *peers_.lost != 0;
  if (!peers_.check || (!is_lost && Clock::now() < next_)) return {};
  next_ = Clock::now() + period;
  return peers_.check();
}

// MPI may see a connection end before the node's leader has seen the end of the process.
Status PeerWatch::explain(Status failed) const {
  constexpr auto patience = std::chrono::seconds(1);
  constexpr timespec pause{0, 1'000'000};
  if (failed || !peers_.check) return failed;
  for (const auto until = Clock::now() + patience; Clock::now() < until;) {
    SHIMA_TRY(check_now());
    nanosleep(&pause, nullptr);
  }
  return failed;
}

Status await_end(MPI_Request& request, const Peers& peers) {
  Rest pause(Rest::Pace::growing, peers.has_core);
  PeerWatch watch(peers);
  int done = 0;
  while (SHIMA_REAL(Test)(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done == 0) {
    pause.rest();
    SHIMA_TRY(watch.check());
  }
  return {};
}

Status await(MPI_Request& request, const char* doing, const Peers& peers) {
  Rest pause(Rest::Pace::growing, peers.has_core);
  PeerWatch watch(peers);
  int done = 0;
  while (true) {
    SHIMA_TRY(watch.explain(checked(SHIMA_REAL(Test)(&request, &done, MPI_STATUS_IGNORE), doing)));
    if (done != 0) return {};
    pause.rest();
    SHIMA_TRY(watch.check());
  }
}

}  // namespace shima
