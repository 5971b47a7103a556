#include "mpiio/comm/message_channel.h"

#include <array>
#include <limits>
#include <numeric>

#include "base/fault_point.h"
#include "group/outcome_words.h"
#include "mpiio/comm/real_mpi.h"

namespace shima {
namespace {

constexpr int data_tag = 1;

}  // namespace

Result<Messenger::Ticket> MpiMessenger::send(int to, std::span<const std::byte> data) {
  MPI_Request request = MPI_REQUEST_NULL;
  SHIMA_TRY(checked(PMPI_Isend(data.data(), static_cast<int>(data.size()), MPI_BYTE, to, data_tag,
                               comm_, &request),
                    "sending to another node"));
  under_way_[next_] = request;
  return next_++;
}

Result<Messenger::Ticket> MpiMessenger::receive(int from, std::span<std::byte> data) {
  MPI_Request request = MPI_REQUEST_NULL;
  SHIMA_TRY(checked(PMPI_Irecv(data.data(), static_cast<int>(data.size()), MPI_BYTE, from, data_tag,
                               comm_, &request),
                    "receiving from another node"));
  under_way_[next_] = request;
  return next_++;
}

Result<bool> MpiMessenger::done(Ticket ticket, std::uint64_t& len_bytes) {
  const auto found = under_way_.find(ticket);
  MPI_Status status;
  int flag = 0;
  SHIMA_TRY(checked(SHIMA_REAL(Test)(&found->second, &flag, &status),
                    "waiting for a message of another node"));
  if (flag == 0) return false;
  int count = 0;
  PMPI_Get_count(&status, MPI_BYTE, &count);
  len_bytes = count > 0 ? static_cast<std::uint64_t>(count) : 0;
  under_way_.erase(found);
  return true;
}

Result<std::unique_ptr<MessageChannel>> MessageChannel::make(
    std::shared_ptr<const MessageGround> ground, MPI_Comm comm, std::uint64_t key) {
  MPI_Comm own = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  SHIMA_TRY(checked(PMPI_Comm_idup(comm, &own, &request), "duplicating a communicator"));
  SHIMA_TRY(await(request, "duplicating a communicator"));
  PMPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
  return std::unique_ptr<MessageChannel>(new MessageChannel(std::move(ground), own, key));
}

MessageChannel::MessageChannel(std::shared_ptr<const MessageGround> ground, MPI_Comm comm,
                               std::uint64_t key)
    : ground_(std::move(ground)), comm_(comm), messenger_(comm) {
  PMPI_Comm_rank(comm_, &rank_);
  if (ground_->pointer_service)
    shared_pointer_ = std::make_unique<PointerKept>(ground_->pointer_service, key);
  if (ground_->pointer_client)
    shared_pointer_ = std::make_unique<PointerAsked>(ground_->pointer_client, key);
}

MessageChannel::~MessageChannel() {
  int finalized = 0;
  PMPI_Finalized(&finalized);
  if (finalized == 0) PMPI_Comm_free(&comm_);
}

Result<std::vector<std::span<const std::byte>>> MessageChannel::exchange(
    std::span<const std::byte> mine) {
  const auto count = static_cast<std::size_t>(size());
  std::vector<int> lens(count);
  const int len = static_cast<int>(mine.size());
  MPI_Request request = MPI_REQUEST_NULL;
  SHIMA_TRY(checked(PMPI_Iallgather(&len, 1, MPI_INT, lens.data(), 1, MPI_INT, comm_, &request),
                    "exchanging sizes"));
  SHIMA_TRY(await(request, "exchanging sizes"));
  fault_point(FaultPhase::exchange);
  const auto sum = std::accumulate(lens.begin(), lens.end(), std::int64_t{0});
  if (sum > std::numeric_limits<int>::max())
    return fail(Code::unsupported_operation,
                "a collective on several nodes: the descriptions of all accesses "
                "exceed 2 GiB; use datatypes with fewer pieces");
  std::vector<int> starts(count);
  std::exclusive_scan(lens.begin(), lens.end(), starts.begin(), 0);
  turn_ = 1 - turn_;
  std::vector<std::byte>& received = letters_[turn_];
  received.resize(static_cast<std::size_t>(sum));
  SHIMA_TRY(checked(PMPI_Iallgatherv(mine.data(), len, MPI_BYTE, received.data(), lens.data(),
                                     starts.data(), MPI_BYTE, comm_, &request),
                    "exchanging requests"));
  SHIMA_TRY(await(request, "exchanging requests"));
  std::vector<std::span<const std::byte>> letters;
  for (std::size_t i = 0; i < count; ++i)
    letters.push_back(std::span<const std::byte>(received).subspan(
        static_cast<std::size_t>(starts[i]), static_cast<std::size_t>(lens[i])));
  return letters;
}

Outcome MessageChannel::agree(const Outcome& mine) {
  const Rendezvous::Maxima words = words_of(mine);
  const std::array<std::uint64_t, 2> in{words.first, words.second};
  std::array<std::uint64_t, 2> out{};
  MPI_Request request = MPI_REQUEST_NULL;
  Status met =
      checked(PMPI_Iallreduce(in.data(), out.data(), 2, MPI_UINT64_T, MPI_MAX, comm_, &request),
              "agreeing");
  fault_point(FaultPhase::arrive);
  if (met) met = await(request, "agreeing");
  if (!met) return {.code = met.error().code, .rank = rank_};
  return outcome_of({out[0], out[1]});
}

}  // namespace shima
