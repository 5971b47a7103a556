#include "mpiio/comm/first_meetings.h"

#include <fmt/format.h>
#include <sched.h>

#include <chrono>
#include <string>

#include "base/clock.h"
#include "mpiio/comm/agree_over.h"

namespace shima {
namespace {

constexpr const char* doing = "introducing ranks to each other";

}  // namespace

Result<FirstMeetings> FirstMeetings::begin(MPI_Comm comm) {
  static_assert(memory_bytes(few_ranks) <= AnswerMemory::reserve_bytes);
  int ranks = 0;
  PMPI_Comm_size(comm, &ranks);
  const auto size = static_cast<std::size_t>(ranks);
  FirstMeetings meetings(comm, size);
  if (size > few_ranks) {
    const Status mine =
        meetings.memory_.data() != nullptr ? Status{} : fail(Code::no_memory, doing);
    SHIMA_TRY(agree_over(comm, mine, doing));
  }
  // Without memory, the reserve is for a few threads at once. A rank that takes no part leaves the
  // others waiting, so it fails only if none becomes free.
  const auto until = Clock::now() + std::chrono::seconds(10);
  while (meetings.memory_.data() == nullptr) {
    if (Clock::now() > until) return fail(Code::no_memory, doing);
    sched_yield();
    meetings.memory_.take();
  }
  std::memset(meetings.memory_.data(), 0, memory_bytes(size));
  return meetings;
}

Status FirstMeetings::finish(Status started, MPI_Request request, const Peers& peers) {
  if (started) started = caught([&] { return await(request, doing, peers); });
  if (!started) memory_.keep();  // the MPI may still write to it
  return started;
}

Status FirstMeetings::gather_entries(const Status& mine, std::size_t entry_bytes,
                                     const Peers& peers) {
  const std::uint64_t code = mine ? 0 : static_cast<std::uint64_t>(mine.error().code);
  std::memcpy(own(), &code, sizeof code);
  const int len = static_cast<int>(entry_bytes);
  MPI_Request request = MPI_REQUEST_NULL;
  const Status started = checked(
      PMPI_Iallgather(own(), len, MPI_BYTE, values(), len, MPI_BYTE, comm_, &request), doing);
  SHIMA_TRY(finish(started, request, peers));
  std::uint64_t worst = 0;
  std::size_t where = 0;
  for (std::size_t i = 0; i < size_; ++i) {
    std::uint64_t other = 0;
    std::memcpy(&other, values() + i * entry_bytes, sizeof other);
    if (other <= worst) continue;
    worst = other;
    where = i;
  }
  if (worst == 0) return {};
  if (worst == code) return mine;
  return fail_settled(static_cast<Code>(worst), 0,
                      [&] { return fmt::format("{}: rank {} failed", doing, where); });
}

Status FirstMeetings::broadcast_bytes(std::size_t len_bytes, const Peers& peers) {
  MPI_Request request = MPI_REQUEST_NULL;
  const Status started = checked(
      PMPI_Ibcast(told(), static_cast<int>(len_bytes), MPI_BYTE, 0, comm_, &request), doing);
  return finish(started, request, peers);
}

}  // namespace shima
