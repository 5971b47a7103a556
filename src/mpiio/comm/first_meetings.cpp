#include "mpiio/comm/first_meetings.h"

#include <algorithm>
#include <tuple>

namespace shima {
namespace {

constexpr const char* doing = "introducing ranks to each other";

}  // namespace

Result<FirstMeetings> FirstMeetings::begin(MPI_Comm comm, const Status& ready) {
  int size = 0;
  PMPI_Comm_size(comm, &size);
  FirstMeetings meetings(comm, static_cast<std::size_t>(size));
  const Status mine = !ready ? ready : caught([&]() -> Status {
    meetings.memory_ = std::make_unique<Memory>();
    meetings.memory_->values.resize(meetings.size_ * meetings.memory_->mine.size());
    return {};
  });
  SHIMA_TRY(agree_over(comm, mine, doing));
  return meetings;
}

Status FirstMeetings::finish(Status started, MPI_Request request, const Peers& peers) {
  if (started) started = await(request, doing, peers);
  if (!started) std::ignore = memory_.release();  // the MPI may still write to it
  return started;
}

Status FirstMeetings::gather_entries(const Status& mine, std::size_t entry_bytes,
                                     const Peers& peers) {
  const std::uint64_t code = mine ? 0 : static_cast<std::uint64_t>(mine.error().code);
  std::memcpy(memory_->mine.data(), &code, sizeof code);
  const int len = static_cast<int>(entry_bytes);
  MPI_Request request = MPI_REQUEST_NULL;
  const Status started =
      checked(PMPI_Iallgather(memory_->mine.data(), len, MPI_BYTE, memory_->values.data(), len,
                              MPI_BYTE, comm_, &request),
              doing);
  SHIMA_TRY(finish(started, request, peers));
  std::uint64_t worst = 0;
  for (std::size_t i = 0; i < size_; ++i) {
    std::uint64_t other = 0;
    std::memcpy(&other, memory_->values.data() + i * entry_bytes, sizeof other);
    worst = std::max(worst, other);
  }
  if (worst == 0) return {};
  if (worst == code) return mine;
  return fail(static_cast<Code>(worst), "introducing ranks to each other: another rank failed");
}

Status FirstMeetings::broadcast_bytes(std::size_t len_bytes, const Peers& peers) {
  MPI_Request request = MPI_REQUEST_NULL;
  const Status started = checked(PMPI_Ibcast(memory_->broadcast.data(), static_cast<int>(len_bytes),
                                             MPI_BYTE, 0, comm_, &request),
                                 doing);
  return finish(started, request, peers);
}

}  // namespace shima
