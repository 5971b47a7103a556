#include "mpiio/comm/mpi_messenger.h"

#include <algorithm>
#include <new>
#include <tuple>

#include "mpiio/mpi/real_mpi.h"

namespace shima {
namespace {

constexpr const char* counting = "counting the messages of a call that failed";

}  // namespace

MpiMessenger::MpiMessenger(MPI_Comm comm, const Topology& topology, const Peers& peers)
    : comm_(comm),
      topology_(topology),
      peers_(peers),
      state_(std::make_unique<State>()),
      pause_(Rest::Pace::growing, peers.has_core),
      watch_(peers) {
  PMPI_Comm_rank(comm_, &rank_);
  for (int node = 0; node < topology_.node_count(); ++node)
    if (node != topology_.node_of(rank_))
      state_->peers.try_emplace(topology_.ranks_on(node).front());
}

MpiMessenger::~MpiMessenger() {
  if (gave_up_) std::ignore = state_.release();
}

Result<Messenger::Ticket> MpiMessenger::send(int to, Lane lane, MessageBuffer message) {
  SHIMA_TRY(watch_.check());
  Tally& sent = state_->peers[to].sent;
  SHIMA_TRY_ASSIGN(
      const Ticket ticket,
      start({.buffer = std::move(message), .peer = to, .tag = static_cast<int>(lane)}));
  ++sent[static_cast<std::size_t>(lane)];
  return ticket;
}

Result<Messenger::Ticket> MpiMessenger::receive(int from, Lane lane, MessageBuffer buffer) {
  state_->peers.try_emplace(from);
  return start(
      {.buffer = std::move(buffer), .peer = from, .tag = static_cast<int>(lane), .incoming = true});
}

Result<Messenger::Ticket> MpiMessenger::start(Message message) {
  Message& kept = state_->under_way[next_] = std::move(message);
  const Status started = checked(begin(kept), "exchanging messages with another node");
  if (started) return next_++;
  state_->under_way.erase(next_);
  return std::unexpected(started.error());
}

// A synchronous send is complete only once its receive has begun.
int MpiMessenger::begin(Message& message) {
  const auto bytes = message.buffer.bytes();
  const int len = static_cast<int>(bytes.size());
  if (message.incoming)
    return PMPI_Irecv(bytes.data(), len, MPI_BYTE, message.peer, message.tag, comm_,
                      &message.request);
  const auto send = message.tag == static_cast<int>(Lane::request) ? PMPI_Issend : PMPI_Isend;
  return send(bytes.data(), len, MPI_BYTE, message.peer, message.tag, comm_, &message.request);
}

Result<std::optional<int>> MpiMessenger::sender(Lane lane) {
  MPI_Status status;
  int flag = 0;
  SHIMA_TRY(watch_.check());
  SHIMA_TRY(watch_.explain(
      checked(PMPI_Iprobe(MPI_ANY_SOURCE, static_cast<int>(lane), comm_, &flag, &status),
              "looking for a message of another node")));
  return flag != 0 ? std::optional(status.MPI_SOURCE) : std::nullopt;
}

Result<std::optional<MessageBuffer>> MpiMessenger::done(Ticket ticket) {
  const auto found = state_->under_way.find(ticket);
  SHIMA_TRY(watch_.check());
  Message& message = found->second;
  MPI_Status status;
  int flag = 0;
  SHIMA_TRY(watch_.explain(checked(SHIMA_REAL(Test)(&message.request, &flag, &status),
                                   "waiting for a message of another node")));
  if (flag == 0) return std::nullopt;
  if (message.incoming) {
    int count = 0;
    PMPI_Get_count(&status, MPI_BYTE, &count);
    message.buffer.set_len_bytes(static_cast<std::size_t>(std::max(count, 0)));
    ++count_of(message);
  }
  std::optional<MessageBuffer> buffer(std::move(message.buffer));
  state_->under_way.erase(found);
  return buffer;
}

// Of the messages received from its peer with its tag.
int& MpiMessenger::count_of(const Message& message) {
  return state_->peers.find(message.peer)->second.received[static_cast<std::size_t>(message.tag)];
}

void MpiMessenger::begin() noexcept {
  for (auto& [rank, peer] : state_->peers) peer = {};
}

void MpiMessenger::quit() noexcept {
  if (gave_up_ || !watch_.check_now()) return;
  for (int node = 0; node < topology_.node_count(); ++node) {
    if (node == topology_.node_of(rank_)) continue;
    const int leader = topology_.ranks_on(node).front();
    Peer& peer = state_->peers.find(leader)->second;
    if (PMPI_Isend(nullptr, 0, MPI_BYTE, leader, quit_tag, comm_, &peer.quit) == MPI_SUCCESS)
      ++peer.sent[quit_tag];
  }
}

// The loss of a rank ends a transfer, too; the agreement after it reports the error.
bool MpiMessenger::somebody_quit() noexcept {
  int flag = 0;
  if (!watch_.check()) return true;
  return PMPI_Iprobe(MPI_ANY_SOURCE, quit_tag, comm_, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS ||
         flag != 0;
}

void MpiMessenger::drain() noexcept {
  const Status drained = caught([&]() -> Status {
    if (gave_up_) return {};
    take_back();
    SHIMA_TRY(tell_counts());
    pause_.reset();
    while (true) {
      SHIMA_TRY_ASSIGN(const bool finished, finish_some());
      SHIMA_TRY_ASSIGN(const bool dropped, drop_some());
      if (finished && dropped) return {};
      pause_.rest();
      SHIMA_TRY(watch_.check());
    }
  });
  pause_.reset();
  if (!drained) give_up();
}

void MpiMessenger::take_back() {
  for (auto& [ticket, message] : state_->under_way)
    if (message.incoming) PMPI_Cancel(&message.request);
}

// A synchronous send is complete once its receive has begun; once those of all members are, all
// counts have been heard.
Status MpiMessenger::tell_counts() {
  MPI_Request all_told = MPI_REQUEST_NULL;
  bool is_told = false;
  SHIMA_TRY(send_counts());
  pause_.reset();
  while (true) {
    SHIMA_TRY(hear_counts());
    if (is_told) {
      int flag = 0;
      SHIMA_TRY(checked(SHIMA_REAL(Test)(&all_told, &flag, MPI_STATUS_IGNORE), counting));
      if (flag != 0) return {};
    } else {
      SHIMA_TRY_ASSIGN(is_told, counts_received());
      if (is_told) SHIMA_TRY(checked(PMPI_Ibarrier(comm_, &all_told), counting));
    }
    pause_.rest();
    SHIMA_TRY(watch_.check());
  }
}

Status MpiMessenger::send_counts() {
  for (auto& [rank, peer] : state_->peers) {
    if (peer.sent == Tally{}) continue;
    SHIMA_TRY(checked(PMPI_Issend(peer.sent.data(), static_cast<int>(peer.sent.size()), MPI_INT,
                                  rank, counts_tag, comm_, &peer.counts),
                      counting));
  }
  return {};
}

// Whether the peers have received this member's counts.
Result<bool> MpiMessenger::counts_received() {
  bool all = true;
  for (auto& [rank, peer] : state_->peers) {
    int flag = 0;
    SHIMA_TRY(checked(SHIMA_REAL(Test)(&peer.counts, &flag, MPI_STATUS_IGNORE), counting));
    all = all && flag != 0;
  }
  return all;
}

// A member that is no peer has sent messages that this one has not looked at.
Status MpiMessenger::hear_counts() {
  while (true) {
    MPI_Status status;
    int flag = 0;
    SHIMA_TRY(checked(PMPI_Iprobe(MPI_ANY_SOURCE, counts_tag, comm_, &flag, &status), counting));
    if (flag == 0) return {};
    Tally& counts = state_->arriving;
    MPI_Request request = MPI_REQUEST_NULL;
    SHIMA_TRY(checked(PMPI_Irecv(counts.data(), static_cast<int>(counts.size()), MPI_INT,
                                 status.MPI_SOURCE, counts_tag, comm_, &request),
                      counting));
    SHIMA_TRY(await(request, counting, peers_));
    const auto known = state_->peers.find(status.MPI_SOURCE);
    if (known == state_->peers.end())
      SHIMA_TRY(drop_all(status.MPI_SOURCE, counts));
    else
      known->second.expected = counts;
    pause_.reset();
  }
}

Status MpiMessenger::drop_all(int from, const Tally& counts) {
  for (int tag = 0; tag <= quit_tag; ++tag) {
    for (int left = counts[static_cast<std::size_t>(tag)]; left > 0;) {
      SHIMA_TRY_ASSIGN(const bool dropped, drop_one(from, tag));
      if (dropped) {
        --left;
        continue;
      }
      pause_.rest();
      SHIMA_TRY(watch_.check());
    }
  }
  return {};
}

// Returns whether no message of this member is under way any more.
Result<bool> MpiMessenger::finish_some() {
  bool all = true;
  for (auto at = state_->under_way.begin(); at != state_->under_way.end();) {
    Message& message = at->second;
    MPI_Status status;
    int flag = 0;
    SHIMA_TRY(checked(SHIMA_REAL(Test)(&message.request, &flag, &status), "ending a message"));
    if (flag == 0) {
      all = false;
      ++at;
      continue;
    }
    int cancelled = 0;
    if (message.incoming) PMPI_Test_cancelled(&status, &cancelled);
    if (message.incoming && cancelled == 0) ++count_of(message);
    at = state_->under_way.erase(at);
  }
  for (auto& [rank, peer] : state_->peers) {
    int flag = 0;
    SHIMA_TRY(checked(SHIMA_REAL(Test)(&peer.quit, &flag, MPI_STATUS_IGNORE), "ending a message"));
    all = all && flag != 0;
  }
  return all;
}

// Receives and drops messages that no request expects; returns whether all of them have arrived.
Result<bool> MpiMessenger::drop_some() {
  bool all = true;
  for (auto& [from, peer] : state_->peers) {
    for (int tag = 0; tag <= quit_tag; ++tag) {
      const auto lane = static_cast<std::size_t>(tag);
      const int expected = peer.expected[lane];
      int& received = peer.received[lane];
      if (received >= expected) continue;
      SHIMA_TRY_ASSIGN(const bool dropped, drop_one(from, tag));
      if (dropped) ++received;
      all = all && received >= expected;
    }
  }
  return all;
}

// Returns whether there was a message.
Result<bool> MpiMessenger::drop_one(int from, int tag) {
  int flag = 0;
  SHIMA_TRY(
      checked(PMPI_Iprobe(from, tag, comm_, &flag, MPI_STATUS_IGNORE), "looking for a message"));
  if (flag != 0) SHIMA_TRY(drop(from, tag));
  return flag != 0;
}

Status MpiMessenger::drop(int from, int tag) {
  MPI_Status status;
  SHIMA_TRY(checked(PMPI_Probe(from, tag, comm_, &status), "looking for a message"));
  int count = 0;
  PMPI_Get_count(&status, MPI_BYTE, &count);
  // If there is no memory for the message, MPI truncates it; that error means nothing here.
  MessageBuffer buffer;
  std::ignore = caught([&]() -> Status {
    buffer = MessageBuffer(static_cast<std::size_t>(std::max(count, 0)));
    return {};
  });
  const auto bytes = buffer.bytes();
  MPI_Request request = MPI_REQUEST_NULL;
  if (PMPI_Irecv(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, from, tag, comm_,
                 &request) != MPI_SUCCESS)
    return {};
  std::ignore = caught([&] { return await_end(request, peers_); });
  Status alive = watch_.check_now();
  // The request may be under way for ever.
  if (!alive) std::ignore = new (std::nothrow) MessageBuffer(std::move(buffer));
  return alive;
}

}  // namespace shima
