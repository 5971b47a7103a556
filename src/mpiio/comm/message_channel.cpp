#include "mpiio/comm/message_channel.h"

#include <algorithm>
#include <tuple>

#include "base/fault_point.h"
#include "group/agreement.h"
#include "group/message_places.h"
#include "group/outcome_words.h"
#include "mpiio/comm/agree_over.h"
#include "mpiio/comm/await.h"
#include "mpiio/comm/real_mpi.h"

namespace shima {

MessageChannel::Memory::Memory(std::size_t members)
    : lens(members), counts(members), starts(members) {
  for (auto& all : envelopes) all.resize(members);
  for (auto& all : messages) all.resize(members);
}

Result<std::unique_ptr<MessageChannel>> MessageChannel::make(
    std::shared_ptr<const MessageGround> ground, MPI_Comm comm, std::uint64_t key) {
  constexpr const char* doing = "duplicating a communicator";
  MPI_Comm own = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  SHIMA_TRY(checked(PMPI_Comm_idup(comm, &own, &request), doing));
  SHIMA_TRY(await(request, doing));
  PMPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
  auto made = caught([&]() -> Result<std::unique_ptr<MessageChannel>> {
    return std::unique_ptr<MessageChannel>(new MessageChannel(std::move(ground), own, key));
  });
  const Status all = agree_over(comm, status_of(made), "opening a file on several nodes");
  if (all) return made;
  if (!made) PMPI_Comm_free(&own);
  return std::unexpected(all.error());
}

MessageChannel::MessageChannel(std::shared_ptr<const MessageGround> ground, MPI_Comm comm,
                               std::uint64_t key)
    : ground_(std::move(ground)),
      comm_(comm),
      memory_(std::make_unique<Memory>(ground_->members.size())),
      messenger_(comm, ground_->members.size()) {
  PMPI_Comm_rank(comm_, &rank_);
  if (ground_->pointer_service)
    shared_pointer_ = std::make_unique<PointerKept>(ground_->pointer_service, key);
  if (ground_->pointer_client)
    shared_pointer_ = std::make_unique<PointerAsked>(ground_->pointer_client, key);
}

MessageChannel::~MessageChannel() {
  if (lost_) std::ignore = memory_.release();
  int finalized = 0;
  PMPI_Finalized(&finalized);
  if (finalized == 0 && !lost_) PMPI_Comm_free(&comm_);
}

Status MessageChannel::finish(Status started, MPI_Request request, const char* doing) {
  if (started) started = await(request, doing);
  if (!started) {
    lost_ = true;
    messenger_.give_up();
  }
  return started;
}

Status MessageChannel::gather_envelopes(const Status& ready) {
  constexpr const char* doing = "exchanging requests";
  Memory& memory = *memory_;
  memory.mine.worst = words_of(outcome_of(*this, ready)).first;
  if (!ready) memory.mine.len_bytes = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  const Status started = checked(
      PMPI_Iallgather(&memory.mine, sizeof(Envelope), MPI_BYTE, memory.envelopes[turn_].data(),
                      sizeof(Envelope), MPI_BYTE, comm_, &request),
      doing);
  fault_point(FaultPhase::exchange);
  SHIMA_TRY(finish(started, request, doing));
  std::uint64_t worst = 0;
  for (std::size_t i = 0; i < memory.lens.size(); ++i) {
    const Envelope& envelope = memory.envelopes[turn_][i];
    worst = std::max(worst, envelope.worst);
    memory.lens[i] = envelope.len_bytes;
    if (envelope.len_bytes <= Envelope::inline_bytes)
      memory.messages[turn_][i] = std::span(envelope.data).first(envelope.len_bytes);
  }
  return settled(*this, outcome_of({worst, 0}), ready, doing);
}

// Long messages are stored back to back; this includes those that arrived whole in their envelopes.
Status MessageChannel::make_room(std::span<const std::byte> mine) {
  Memory& memory = *memory_;
  SHIMA_TRY_ASSIGN(const std::uint64_t sum, length_of_messages(memory.lens));
  memory.body.assign(mine.begin(), mine.end());
  std::vector<std::byte>& bodies = memory.bodies[turn_];
  bodies.resize(sum);
  std::size_t start = 0;
  for (std::size_t i = 0; i < memory.lens.size(); ++i) {
    memory.starts[i] = static_cast<int>(start);
    memory.counts[i] = static_cast<int>(memory.lens[i]);
    memory.messages[turn_][i] = std::span(bodies).subspan(start, memory.lens[i]);
    start += memory.lens[i];
  }
  return {};
}

Status MessageChannel::gather_bodies() {
  constexpr const char* doing = "exchanging long requests";
  Memory& memory = *memory_;
  MPI_Request request = MPI_REQUEST_NULL;
  const Status started =
      checked(PMPI_Iallgatherv(memory.body.data(), static_cast<int>(memory.body.size()), MPI_BYTE,
                               memory.bodies[turn_].data(), memory.counts.data(),
                               memory.starts.data(), MPI_BYTE, comm_, &request),
              doing);
  return finish(started, request, doing);
}

Result<Messages> MessageChannel::exchange(const Result<std::span<const std::byte>>& mine) noexcept {
  turn_ = 1 - turn_;
  Memory& memory = *memory_;
  if (mine) {
    memory.mine.len_bytes = mine->size();
    std::ranges::copy(mine->first(std::min(mine->size(), Envelope::inline_bytes)),
                      memory.mine.data.begin());
  }
  SHIMA_TRY(gather_envelopes(status_of(mine)));
  if (std::ranges::max(memory.lens) > Envelope::inline_bytes) {
    const Status room = caught([&] { return make_room(*mine); });
    SHIMA_TRY(agree_on(*this, room, "exchanging long requests"));
    SHIMA_TRY(gather_bodies());
  }
  return Messages(memory.messages[turn_]);
}

Result<Outcome> MessageChannel::meet(const Outcome& mine) {
  const Rendezvous::Maxima words = words_of(mine);
  Memory& memory = *memory_;
  memory.words = {words.first, words.second};
  MPI_Request request = MPI_REQUEST_NULL;
  const Status started = checked(PMPI_Iallreduce(memory.words.data(), memory.all_words.data(), 2,
                                                 MPI_UINT64_T, MPI_MAX, comm_, &request),
                                 "agreeing");
  fault_point(FaultPhase::arrive);
  SHIMA_TRY(finish(started, request, "agreeing"));
  return outcome_of({memory.all_words[0], memory.all_words[1]});
}

Outcome MessageChannel::agree(const Outcome& mine) noexcept {
  const auto met = caught([&] { return meet(mine); });
  if (!met) return {.code = met.error().code, .sys_errno = 0, .rank = rank_};
  return *met;
}

}  // namespace shima
