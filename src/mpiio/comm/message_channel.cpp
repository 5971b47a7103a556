#include "mpiio/comm/message_channel.h"

#include <algorithm>
#include <new>
#include <tuple>

#include "base/fault_point.h"
#include "group/agreement.h"
#include "group/message_places.h"
#include "group/outcome_words.h"
#include "mpiio/comm/agree_over.h"
#include "mpiio/mpi/await.h"
#include "mpiio/mpi/real_mpi.h"

namespace shima {
namespace {

// If a rank is lost, the request stays under way, and the MPI may still write the result.
Result<MPI_Comm> duplicate(MPI_Comm comm, const Peers& peers) {
  constexpr const char* doing = "duplicating a communicator";
  thread_local MPI_Comm reserve = MPI_COMM_NULL;
  auto* const heap = new (std::nothrow) MPI_Comm(MPI_COMM_NULL);
  MPI_Comm* const made = heap != nullptr ? heap : &reserve;
  MPI_Request request = MPI_REQUEST_NULL;
  const PeerWatch watch(peers);
  SHIMA_TRY(watch.check_now());
  SHIMA_TRY(watch.explain(checked(PMPI_Comm_idup(comm, made, &request), doing)));
  SHIMA_TRY(await(request, doing, peers));
  const MPI_Comm result = *made;
  delete heap;
  return result;
}

}  // namespace

MessageChannel::Memory::Memory(std::size_t members)
    : lens(members), counts(members), starts(members) {
  for (auto& all : envelopes) all.resize(members);
  for (auto& all : messages) all.resize(members);
}

Result<std::unique_ptr<MessageChannel>> MessageChannel::make(
    std::shared_ptr<const MessageGround> ground, MPI_Comm comm, std::uint64_t key) {
  const Peers peers = ground->peers();
  SHIMA_TRY_ASSIGN(MPI_Comm own, duplicate(comm, peers));
  PMPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
  auto made = caught([&]() -> Result<std::unique_ptr<MessageChannel>> {
    std::unique_ptr<MessageChannel> channel(new MessageChannel(ground, own, key));
    SHIMA_TRY_ASSIGN(channel->near_, NodeChannel::make_near(ground->near, key, channel->link_));
    channel->owns_comm_ = true;
    return channel;
  });
  const Status all = agree_over(own, status_of(made), "opening a file on several nodes", peers);
  if (all) return made;
  const bool is_lost = all.error().code == Code::peer_lost;
  if (made) (*made)->lost_ = is_lost;
  if (!made && !is_lost) PMPI_Comm_free(&own);
  return std::unexpected(all.error());
}

MessageChannel::MessageChannel(std::shared_ptr<const MessageGround> ground, MPI_Comm comm,
                               std::uint64_t key)
    : ground_(std::move(ground)),
      peers_(ground_->peers()),
      comm_(comm),
      memory_(std::make_unique<Memory>(static_cast<std::size_t>(ground_->near->topology.size()))),
      messenger_(comm, ground_->near->topology, peers_),
      link_(comm, *ground_->near, peers_, [this] { std::ignore = transfer_quit(); }) {
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
  if (finalized == 0 && owns_comm_ && !lost_ && !link_.lost()) PMPI_Comm_free(&comm_);
}

template <class Start>
Status MessageChannel::perform(const char* doing, Start start) {
  MPI_Request request = MPI_REQUEST_NULL;
  const PeerWatch watch(peers_);
  Status done = watch.check_now();
  if (done) done = watch.explain(checked(start(&request), doing));
  if (done) done = await(request, doing, peers_);
  if (!done) {
    lost_ = true;
    messenger_.give_up();
  }
  return done;
}

Status MessageChannel::gather_envelopes(const Status& ready) {
  constexpr const char* doing = "exchanging requests";
  Memory& memory = *memory_;
  memory.mine.worst = words_of(outcome_of(*this, ready)).first;
  if (!ready) memory.mine.len_bytes = 0;
  SHIMA_TRY(perform(doing, [&](MPI_Request* request) {
    const int code =
        PMPI_Iallgather(&memory.mine, sizeof(Envelope), MPI_BYTE, memory.envelopes[turn_].data(),
                        sizeof(Envelope), MPI_BYTE, comm_, request);
    fault_point(FaultPhase::exchange);
    return code;
  }));
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
  Memory& memory = *memory_;
  return perform("exchanging long requests", [&](MPI_Request* request) {
    return PMPI_Iallgatherv(memory.body.data(), static_cast<int>(memory.body.size()), MPI_BYTE,
                            memory.bodies[turn_].data(), memory.counts.data(), memory.starts.data(),
                            MPI_BYTE, comm_, request);
  });
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

void MessageChannel::note(Code outcome) noexcept {
  if (outcome != Code::peer_lost) return;
  lost_ = true;
  messenger_.give_up();
}

void MessageChannel::begin_transfer() noexcept {
  near_->begin_transfer();
  messenger_.begin();
}

void MessageChannel::quit_transfer() noexcept {
  near_->quit_transfer();
  messenger_.quit();
}

// The node leader hears of members elsewhere, and tells the members near it.
bool MessageChannel::transfer_quit() noexcept {
  if (near_->transfer_quit()) return true;
  if (near_index() != 0 || !messenger_.somebody_quit()) return false;
  near_->quit_transfer();
  return true;
}

void MessageChannel::wait_for_transfers() noexcept {
  near_->wait_for_transfers();
  messenger_.drain();
}

}  // namespace shima
