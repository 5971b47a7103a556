#include "mpiio/comm/introduction/first_meetings.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "group/member_tree.h"
#include "mpiio/comm/introduction/agree_over.h"

namespace shima {
namespace {

constexpr const char* doing = "introducing ranks to each other";

std::uint64_t code_of(const Status& status) {
  return status ? 0 : static_cast<std::uint64_t>(status.error().code);
}

}  // namespace

FirstMeetings::FirstMeetings(MPI_Comm comm, int rank, std::size_t size)
    : comm_(comm), rank_(rank), size_(size), memory_(memory_bytes(size, rank)) {}

Result<FirstMeetings> FirstMeetings::begin(MPI_Comm comm) {
  static_assert(memory_bytes(few_ranks, 0) <= AnswerMemory::reserve_bytes);
  int ranks = 0;
  int rank = 0;
  PMPI_Comm_size(comm, &ranks);
  PMPI_Comm_rank(comm, &rank);
  FirstMeetings meetings(comm, rank, static_cast<std::size_t>(ranks));
  if (!meetings.are_few()) {
    const Status mine =
        meetings.memory_.data() != nullptr ? Status{} : fail(Code::no_memory, doing);
    SHIMA_TRY(agree_over(comm, mine, doing));
  }
  // A rank that takes no part leaves the others waiting.
  if (!meetings.memory_.take_within(std::chrono::seconds(10))) return fail(Code::no_memory, doing);
  meetings.clear();
  return meetings;
}

void FirstMeetings::clear() {
  if (memory_.data() != nullptr) std::memset(memory_.data(), 0, memory_bytes(size_, rank_));
}

Status FirstMeetings::finish(Status started, MPI_Request request, const Peers& peers) {
  if (started) started = caught([&] { return await(request, doing, peers); });
  if (started) return started;
  memory_.keep();  // the MPI may still write to it
  memory_.take();
  clear();
  return started;
}

Status FirstMeetings::gather_entries(const Status& mine, std::size_t len_bytes, Where where,
                                     const Peers& peers) {
  if (memory_.data() == nullptr) return fail(Code::no_memory, doing);
  const std::uint64_t code = code_of(mine);
  std::memcpy(own(), &code, sizeof code);
  if (where == Where::everywhere) {
    SHIMA_TRY(exchange_entries(len_bytes, peers));
  } else {
    const int len = static_cast<int>(len_bytes);
    MPI_Request request = MPI_REQUEST_NULL;
    const int started =
        PMPI_Igather(own(), len, MPI_BYTE, values(), len, MPI_BYTE, 0, comm_, &request);
    SHIMA_TRY(finish(checked(started, doing), request, peers));
  }
  const bool has_entries = where == Where::everywhere || rank_ == 0;
  return has_entries ? worst_of(mine, len_bytes) : mine;
}

// Subtrees gather on the way up, and on the way down each rank gets all. The MPI's allgather may
// connect each rank to each.
Status FirstMeetings::exchange_entries(std::size_t len_bytes, const Peers& peers) {
  const MemberTree tree(rank_, static_cast<int>(size_));
  PairExchange pairs(comm_, size_, {lens(), PairExchange::int_count(size_)});
  std::byte* const all = values();
  const auto place = [&](int rank) { return all + static_cast<std::size_t>(rank) * len_bytes; };
  std::memcpy(place(rank_), own(), len_bytes);
  const auto exchange = [&](const Partners& partners, std::byte* from, std::byte* to, int entries) {
    const PairExchange::Bytes bytes{from, to, static_cast<std::size_t>(entries) * len_bytes};
    MPI_Request request = MPI_REQUEST_NULL;
    const Status started = checked(pairs.start(partners, bytes, &request), doing);
    return finish(started, request, peers);
  };
  for (int level = 0; level < tree.levels(); ++level) {
    const Partners partners = tree.up(level);
    const int child = partners.from;
    if (child == Partners::none) {
      SHIMA_TRY(exchange(partners, place(rank_), nullptr, tree.subtree(rank_, level)));
    } else {
      SHIMA_TRY(exchange(partners, nullptr, place(child), tree.subtree(child, level)));
    }
  }
  for (int level = tree.levels(); level-- > 0;) {
    const Partners partners = tree.down(level);
    const bool hears = partners.from != Partners::none;
    SHIMA_TRY(exchange(partners, hears ? nullptr : all, hears ? all : nullptr, tree.size()));
  }
  return {};
}

Status FirstMeetings::worst_of(const Status& mine, std::size_t len_bytes) {
  std::uint64_t worst = 0;
  for (std::size_t i = 0; i < size_; ++i) {
    std::uint64_t other = 0;
    std::memcpy(&other, values() + i * len_bytes, sizeof other);
    if (other <= worst) continue;
    worst = other;
    failed_rank_ = static_cast<int>(i);
  }
  if (worst == 0) return {};
  if (worst == code_of(mine)) return mine;
  return fail_settled(static_cast<Code>(worst), 0,
                      [&] { return fmt::format("{}: rank {} failed", doing, failed_rank_); });
}

Status FirstMeetings::broadcast_part(std::size_t len_bytes, const Peers& peers) {
  MPI_Request request = MPI_REQUEST_NULL;
  const Status started = checked(
      PMPI_Ibcast(part(), static_cast<int>(len_bytes), MPI_BYTE, 0, comm_, &request), doing);
  return finish(started, request, peers);
}

Result<std::vector<std::byte>> FirstMeetings::broadcast(
    const Result<std::span<const std::byte>>& mine, int failed_rank, const Peers& peers) {
  struct Head {
    std::uint64_t code;
    std::uint64_t len_bytes;
    int failed_rank;
  };
  // The head has the first bytes with it: each part is a meeting.
  constexpr std::size_t first_bytes = 1024;
  if (memory_.data() == nullptr) return fail(Code::no_memory, doing);
  const auto put = [&](std::byte* to, std::size_t at, std::size_t len) {
    if (mine) std::ranges::copy(mine->subspan(at, std::min(len, mine->size() - at)), to);
  };
  Head head{code_of(status_of(mine)), mine ? mine->size() : 0, failed_rank};
  std::memcpy(part(), &head, sizeof head);
  if (rank_ == 0) put(part() + sizeof head, 0, first_bytes);
  SHIMA_TRY(broadcast_part(sizeof head + first_bytes, peers));
  std::memcpy(&head, part(), sizeof head);
  if (head.code != 0) {
    if (rank_ == 0) return std::unexpected(mine.error());
    return fail_settled(static_cast<Code>(head.code), 0,
                        [&] { return fmt::format("{}: rank {} failed", doing, head.failed_rank); });
  }
  auto all = caught(
      [&]() -> Result<std::vector<std::byte>> { return std::vector<std::byte>(head.len_bytes); });
  std::size_t at = std::min<std::size_t>(first_bytes, head.len_bytes);
  if (all) std::copy_n(part() + sizeof head, at, all->begin());
  for (std::size_t len = 0; at < head.len_bytes; at += len) {
    len = std::min<std::size_t>(part_bytes, head.len_bytes - at);
    if (rank_ == 0) put(part(), at, len);
    const Status moved = broadcast_part(len, peers);
    if (is_loss(moved) || memory_.data() == nullptr) return std::unexpected(moved.error());
    if (all && !moved) all = std::unexpected(moved.error());
    if (all) std::memcpy(all->data() + at, part(), len);
  }
  return all;
}

}  // namespace shima
