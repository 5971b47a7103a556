#include "mpiio/comm/introduction/first_messages.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "mpiio/comm/introduction/agree_over.h"
#include "mpiio/mpi/duplicate.h"

namespace shima {
namespace {

constexpr const char* doing = "introducing ranks to each other";
constexpr int tag = 0;

}  // namespace

Result<FirstMessages> FirstMessages::begin(MPI_Comm comm, const Status& ready, const Peers& peers) {
  auto own = caught([&] { return duplicate(comm, peers); });
  if (is_loss(status_of(own))) return std::unexpected(own.error());
  FirstMessages messages(own ? *own : MPI_COMM_NULL);
  Status mine = ready;
  if (mine) mine = status_of(own);
  if (mine && messages.memory_.data() == nullptr) mine = fail(Code::no_memory, doing);
  const Status all = agree_over(comm, mine, doing, peers);
  if (all) return messages;
  if (is_loss(all)) messages.give_up();
  return std::unexpected(all.error());
}

FirstMessages::FirstMessages(FirstMessages&& other) noexcept
    : comm_(std::exchange(other.comm_, MPI_COMM_NULL)),
      is_broken_(other.is_broken_),
      memory_(std::move(other.memory_)) {}

FirstMessages::~FirstMessages() {
  if (comm_ != MPI_COMM_NULL && !is_broken_) PMPI_Comm_free(&comm_);
}

MPI_Comm FirstMessages::take_comm() {
  const MPI_Comm taken = std::exchange(comm_, MPI_COMM_NULL);
  return is_broken_ ? MPI_COMM_NULL : taken;
}

Status FirstMessages::finish(int started, MPI_Request request, const Peers& peers) {
  Status done = checked(started, doing);
  if (done) done = caught([&] { return await(request, doing, peers); });
  if (done) return done;
  give_up();
  memory_.keep();  // the MPI may still use it
  memory_.take();
  return done;
}

Status FirstMessages::send(int to, std::span<const std::byte> message, const Peers& peers) {
  while (!message.empty()) {
    if (memory_.data() == nullptr) return fail(Code::no_memory, doing);
    const auto part = message.first(std::min(part_bytes, message.size()));
    std::memcpy(memory_.data(), part.data(), part.size());
    MPI_Request request = MPI_REQUEST_NULL;
    const int started = PMPI_Isend(memory_.data(), static_cast<int>(part.size()), MPI_BYTE, to, tag,
                                   comm_, &request);
    SHIMA_TRY(finish(started, request, peers));
    message = message.subspan(part.size());
  }
  return {};
}

Status FirstMessages::receive(int from, std::span<std::byte> message, const Peers& peers) {
  while (!message.empty()) {
    if (memory_.data() == nullptr) return fail(Code::no_memory, doing);
    const auto part = message.first(std::min(part_bytes, message.size()));
    MPI_Request request = MPI_REQUEST_NULL;
    const int started = PMPI_Irecv(memory_.data(), static_cast<int>(part.size()), MPI_BYTE, from,
                                   tag, comm_, &request);
    SHIMA_TRY(finish(started, request, peers));
    std::memcpy(part.data(), memory_.data(), part.size());
    message = message.subspan(part.size());
  }
  return {};
}

}  // namespace shima
