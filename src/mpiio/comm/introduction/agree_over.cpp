#include "mpiio/comm/introduction/agree_over.h"

#include <sched.h>

#include <array>
#include <atomic>
#include <string>

namespace shima {
namespace {

// Memory for one agreement. Threads that open files at the same time each take one. If an agreement
// fails, the MPI may still write to its memory, so the memory is not released.
struct Place {
  std::atomic<bool> taken{false};
  std::uint64_t mine = 0;
  std::uint64_t all = 0;
};

Place& take_place() {
  static std::array<Place, 64> places;
  while (true) {
    for (Place& place : places)
      if (!place.taken.exchange(true)) return place;
    sched_yield();
  }
}

}  // namespace

std::uint64_t verdict_word(const Status& mine, int rank) {
  if (mine) return 0;
  return static_cast<std::uint64_t>(mine.error().code) << 56 | static_cast<std::uint32_t>(rank);
}

Status verdict_of(std::uint64_t all, const Status& mine, const char* doing) {
  const auto worst = static_cast<Code>(all >> 56);
  if (worst == Code::ok) return {};
  if (!mine && worst == mine.error().code) return mine;
  return fail_settled(worst, 0, [&] {
    return std::string(doing) + ": rank " + std::to_string(all & 0xffffffff) + " failed";
  });
}

Result<std::uint64_t> largest_over(MPI_Comm comm, std::uint64_t mine, const char* doing,
                                   const Peers& peers) noexcept {
  Place& place = take_place();
  place.mine = mine;
  const Status met = caught([&]() -> Status {
    MPI_Request request = MPI_REQUEST_NULL;
    SHIMA_TRY(checked(
        PMPI_Iallreduce(&place.mine, &place.all, 1, MPI_UINT64_T, MPI_MAX, comm, &request), doing));
    return await(request, doing, peers);
  });
  SHIMA_TRY(met);
  const std::uint64_t all = place.all;
  place.taken = false;
  return all;
}

Status agree_over(MPI_Comm comm, const Status& mine, const char* doing,
                  const Peers& peers) noexcept {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  SHIMA_TRY_ASSIGN(const std::uint64_t all,
                   largest_over(comm, verdict_word(mine, rank), doing, peers));
  return verdict_of(all, mine, doing);
}

}  // namespace shima
