#include "mpiio/comm/mpi_messenger.h"

#include <algorithm>
#include <new>
#include <tuple>

#include "mpiio/comm/real_mpi.h"

namespace shima {
namespace {

constexpr int data_tag = 1;
constexpr int quit_tag = 2;

}  // namespace

MpiMessenger::MpiMessenger(MPI_Comm comm, std::size_t members, const Peers& peers)
    : comm_(comm), peers_(peers), state_(std::make_unique<State>(members)), watch_(peers) {
  PMPI_Comm_rank(comm_, &rank_);
}

MpiMessenger::~MpiMessenger() {
  if (gave_up_) std::ignore = state_.release();
}

Result<Messenger::Ticket> MpiMessenger::send(int to, Buffer data) {
  SHIMA_TRY(watch_.check());
  Message& message = state_->under_way[next_];
  message.data = std::move(data);
  message.peer = to;
  const Status started =
      checked(PMPI_Isend(message.data.data(), static_cast<int>(message.data.size()), MPI_BYTE, to,
                         data_tag, comm_, &message.request),
              "sending to another node");
  if (!started) {
    state_->under_way.erase(next_);
    return std::unexpected(started.error());
  }
  ++state_->sent[static_cast<std::size_t>(to)].data;
  return next_++;
}

Result<Messenger::Ticket> MpiMessenger::receive(int from, std::uint64_t len_bytes) {
  Message& message = state_->under_way[next_];
  message.peer = from;
  message.incoming = true;
  const Status started = caught([&]() -> Status {
    message.data.resize(len_bytes);
    return checked(PMPI_Irecv(message.data.data(), static_cast<int>(len_bytes), MPI_BYTE, from,
                              data_tag, comm_, &message.request),
                   "receiving from another node");
  });
  if (!started) {
    state_->under_way.erase(next_);
    return std::unexpected(started.error());
  }
  return next_++;
}

Result<std::optional<Messenger::Buffer>> MpiMessenger::done(Ticket ticket) {
  const auto found = state_->under_way.find(ticket);
  SHIMA_TRY(watch_.check());
  Message& message = found->second;
  MPI_Status status;
  int flag = 0;
  SHIMA_TRY(watch_.explain(checked(SHIMA_REAL(Test)(&message.request, &flag, &status),
                                   "waiting for a message of another node")));
  if (flag == 0) return std::nullopt;
  int count = 0;
  if (message.incoming) {
    PMPI_Get_count(&status, MPI_BYTE, &count);
    message.data.resize(static_cast<std::size_t>(std::max(count, 0)));
    ++state_->received[static_cast<std::size_t>(message.peer)].data;
  }
  std::optional<Buffer> data(std::move(message.data));
  state_->under_way.erase(found);
  return data;
}

void MpiMessenger::begin() noexcept {
  std::ranges::fill(state_->sent, Tally{});
  std::ranges::fill(state_->received, Tally{});
}

void MpiMessenger::quit() noexcept {
  if (gave_up_ || !watch_.check_now()) return;
  for (std::size_t to = 0; to < state_->sent.size(); ++to) {
    if (static_cast<int>(to) == rank_) continue;
    if (PMPI_Isend(nullptr, 0, MPI_BYTE, static_cast<int>(to), quit_tag, comm_,
                   &state_->quits[to]) == MPI_SUCCESS)
      ++state_->sent[to].quits;
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
  SHIMA_TRY(checked(PMPI_Ialltoall(state_->sent.data(), 2, MPI_INT, state_->expected.data(), 2,
                                   MPI_INT, comm_, &request),
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
      ++state_->received[static_cast<std::size_t>(message.peer)].data;
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
    const Tally& expected = state_->expected[from];
    Tally& received = state_->received[from];
    const auto drop_one = [&](int tag, int wanted, int& count) -> Status {
      if (count >= wanted) return {};
      int flag = 0;
      SHIMA_TRY(checked(PMPI_Iprobe(static_cast<int>(from), tag, comm_, &flag, MPI_STATUS_IGNORE),
                        "looking for a message"));
      if (flag == 0) return {};
      SHIMA_TRY(drop(static_cast<int>(from), tag));
      ++count;
      return {};
    };
    SHIMA_TRY(drop_one(data_tag, expected.data, received.data));
    SHIMA_TRY(drop_one(quit_tag, expected.quits, received.quits));
    all = all && received.data >= expected.data && received.quits >= expected.quits;
  }
  return all;
}

Status MpiMessenger::drop(int from, int tag) {
  MPI_Status status;
  SHIMA_TRY(checked(PMPI_Probe(from, tag, comm_, &status), "looking for a message"));
  int count = 0;
  PMPI_Get_count(&status, MPI_BYTE, &count);
  // If there is no memory for the message, MPI truncates it; that error means nothing here.
  Buffer data;
  std::ignore = caught([&]() -> Status {
    data.resize(static_cast<std::size_t>(std::max(count, 0)));
    return {};
  });
  MPI_Request request = MPI_REQUEST_NULL;
  if (PMPI_Irecv(data.data(), static_cast<int>(data.size()), MPI_BYTE, from, tag, comm_,
                 &request) != MPI_SUCCESS)
    return {};
  std::ignore = await(request, "dropping a message", peers_);
  Status alive = watch_.check_now();
  // The request may be under way for ever.
  if (!alive) std::ignore = new (std::nothrow) Buffer(std::move(data));
  return alive;
}

}  // namespace shima
