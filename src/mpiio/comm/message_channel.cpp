#include "mpiio/comm/message_channel.h"

#include <tuple>

#include "base/fault_point.h"
#include "group/agreement.h"
#include "group/combine_values.h"
#include "mpiio/comm/introduction/agree_over.h"
#include "mpiio/mpi/await.h"
#include "mpiio/mpi/real_mpi.h"

namespace shima {
Result<std::unique_ptr<MessageChannel>> MessageChannel::make(
    const std::shared_ptr<const MessageGround>& ground, MPI_Comm own, std::uint64_t key) {
  std::unique_ptr<MessageChannel> channel(new MessageChannel(ground, own, key));
  SHIMA_TRY_ASSIGN(channel->near_, NodeChannel::make_near(ground->near, key, channel->link_));
  channel->owns_comm_ = true;
  return channel;
}

Result<std::unique_ptr<MessageChannel>> MessageChannel::agree(
    Result<std::unique_ptr<MessageChannel>> made, MPI_Comm own, MPI_Comm over, const Peers& peers) {
  const Status all = agree_over(over, status_of(made), "opening a file on several nodes", peers);
  if (all) return made;
  const bool is_lost = is_loss(all);
  if (made) (*made)->lost_ = is_lost;
  if (!made && !is_lost && own != MPI_COMM_NULL) PMPI_Comm_free(&own);
  return std::unexpected(all.error());
}

MessageChannel::MessageChannel(std::shared_ptr<const MessageGround> ground, MPI_Comm comm,
                               std::uint64_t key)
    : ground_(std::move(ground)),
      peers_(ground_->peers()),
      comm_(comm),
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

Status MessageChannel::add_those_before() {
  constexpr const char* doing = "adding up in the order of ranks";
  MPI_Request request = MPI_REQUEST_NULL;
  const PeerWatch watch(peers_);
  Status done = watch.check_now();
  if (done)
    done = watch.explain(checked(
        PMPI_Iexscan(&memory_->mine, &memory_->before, 1, MPI_UINT64_T, MPI_SUM, comm_, &request),
        doing));
  fault_point(FaultPhase::exchange);
  return done ? await(request, doing, peers_) : done;
}

// The MPI's call may succeed on some members and fail on others, so the members agree on its
// outcome. After a failure the MPI may still use the memory, and nothing more is asked of it.
Result<SumInOrder> MessageChannel::sum_in_order(const Result<std::uint64_t>& mine) noexcept {
  constexpr std::string_view doing = "adding up in the order of ranks";
  const Result<std::uint64_t> brought =
      lost_ ? fail_settled(Code::peer_lost, 0, [&] { return std::string(doing); }) : mine;
  SHIMA_TRY_ASSIGN(const std::uint64_t all, combine_values<add_up>(*this, brought));
  *memory_ = {.mine = *mine};
  const Status agreed = agree_on(*this, caught([&] { return add_those_before(); }), doing);
  if (agreed) return SumInOrder{rank_ == 0 ? 0 : memory_->before, all};
  lost_ = true;
  messenger_.give_up();
  return std::unexpected(agreed.error());
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
