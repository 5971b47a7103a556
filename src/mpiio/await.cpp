#include "mpiio/await.h"

#include <fmt/format.h>
#include <sched.h>
#include <time.h>

#include <algorithm>

namespace shima {

void Rest::rest() {
  constexpr int yields = 20;
  constexpr int longest_doubling = 5;
  constexpr long shortest_sleep_ns = 20'000;
  if (looks_++ < yields) {
    sched_yield();
    return;
  }
  const timespec pause{0, shortest_sleep_ns << std::min(looks_ - yields, longest_doubling)};
  nanosleep(&pause, nullptr);
}

Status checked(int mpi_code, const char* doing) {
  if (mpi_code == MPI_SUCCESS) return {};
  char text[MPI_MAX_ERROR_STRING] = "";
  int len = 0;
  PMPI_Error_string(mpi_code, text, &len);
  return fail(Code::internal, fmt::format("{}: MPI says: {}", doing, text));
}

Status await(MPI_Request& request, const char* doing) {
  Rest pause;
  int done = 0;
  while (true) {
    SHIMA_TRY(checked(PMPI_Test(&request, &done, MPI_STATUS_IGNORE), doing));
    if (done != 0) return {};
    pause.rest();
  }
}

}  // namespace shima
