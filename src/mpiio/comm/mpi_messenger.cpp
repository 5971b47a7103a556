#include "mpiio/comm/mpi_messenger.h"

#include <algorithm>
#include <new>
#include <tuple>

#include "mpiio/mpi/real_mpi.h"

namespace shima {

MpiMessenger::MpiMessenger(MPI_Comm comm, const Topology& topology, const Peers& peers)
    : comm_(comm),
      topology_(topology),
      peers_(peers),
      state_(std::make_unique<State>(static_cast<std::size_t>(topology.size()))),
      watch_(peers) {
  PMPI_Comm_rank(comm_, &rank_);
}

MpiMessenger::~MpiMessenger() {
  if (gave_up_) std::ignore = state_.release();
}

Result<Messenger::Ticket> MpiMessenger::send(int to, Lane lane, MessageBuffer message) {
  SHIMA_TRY(watch_.check());
  SHIMA_TRY_ASSIGN(
      const Ticket ticket,
      start({.buffer = std::move(message), .peer = to, .tag = static_cast<int>(lane)}));
  ++state_->sent[static_cast<std::size_t>(to)][static_cast<std::size_t>(lane)];
  return ticket;
}

Result<Messenger::Ticket> MpiMessenger::receive(int from, Lane lane, MessageBuffer buffer) {
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
    ++state_
          ->received[static_cast<std::size_t>(message.peer)][static_cast<std::size_t>(message.tag)];
  }
  std::optional<MessageBuffer> buffer(std::move(message.buffer));
  state_->under_way.erase(found);
  return buffer;
}

void MpiMessenger::begin() noexcept {
  std::ranges::fill(state_->sent, Tally{});
  std::ranges::fill(state_->received, Tally{});
}

void MpiMessenger::quit() noexcept {
  if (gave_up_ || !watch_.check_now()) return;
  for (int node = 0; node < topology_.node_count(); ++node) {
    if (node == topology_.node_of(rank_)) continue;
    const int leader = topology_.ranks_on(node).front();
    const auto to = static_cast<std::size_t>(leader);
    if (PMPI_Isend(nullptr, 0, MPI_BYTE, leader, quit_tag, comm_, &state_->quits[to]) ==
        MPI_SUCCESS)
      ++state_->sent[to][quit_tag];
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

Status MpiMessenger::tell_counts() {
  constexpr const char* doing = "counting the messages of a call that failed";
  MPI_Request request = MPI_REQUEST_NULL;
  SHIMA_TRY(
      checked(PMPI_Ialltoall(state_->sent.data(), lane_count + 1, MPI_INT, state_->expected.data(),
                             lane_count + 1, MPI_INT, comm_, &request),
              doing));
  return await(request, doing, peers_);
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
    if (message.incoming && cancelled == 0)
      ++state_->received[static_cast<std::size_t>(message.peer)]
                        [static_cast<std::size_t>(message.tag)];
    at = state_->under_way.erase(at);
  }
  for (MPI_Request& quit : state_->quits) {
    int flag = 0;
    SHIMA_TRY(checked(SHIMA_REAL(Test)(&quit, &flag, MPI_STATUS_IGNORE), "ending a message"));
    all = all && flag != 0;
  }
  return all;
}

// Receives and drops messages that no request expects; returns whether all of them have arrived.
Result<bool> MpiMessenger::drop_some() {
  bool all = true;
  for (std::size_t from = 0; from < state_->expected.size(); ++from) {
    for (int tag = 0; tag <= quit_tag; ++tag) {
      const auto lane = static_cast<std::size_t>(tag);
      const int expected = state_->expected[from][lane];
      int& received = state_->received[from][lane];
      if (received >= expected) continue;
      SHIMA_TRY_ASSIGN(const bool dropped, drop_one(static_cast<int>(from), tag));
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
  std::ignore = caught([&] { return await(request, "dropping a message", peers_); });
  Status alive = watch_.check_now();
  // The request may be under way for ever.
  if (!alive) std::ignore = new (std::nothrow) MessageBuffer(std::move(buffer));
  return alive;
}

}  // namespace shima
