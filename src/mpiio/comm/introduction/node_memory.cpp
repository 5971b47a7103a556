#include "mpiio/comm/introduction/node_memory.h"

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <tuple>
#include <utility>

#include "base/fault_point.h"
#include "base/log.h"
#include "ipc/wait.h"
#include "mpiio/comm/introduction/agree_over.h"

namespace shima {
namespace {

constexpr const char* doing = "introducing ranks to each other";

// The message of a leader to its node. If it is no error and there are many ranks, the processes of
// the node follow.
struct Answer {
  std::uint64_t code = 0;
  SharedRef memory;
};

// To the rank with an index, which alone is watched: the others get their answers also after a
// loss.
Status answer(const Acquaintance& met, FirstMessages& messages, std::size_t index,
              const Status& mine) {
  const int to = met.around.near_ranks()[index];
  const auto receiver = [&] { return check_alive(met.around.near[index].process); };
  SHIMA_TRY(receiver());
  const std::uint64_t code = mine ? 0 : static_cast<std::uint64_t>(mine.error().code);
  SHIMA_TRY(messages.send_value(to, Answer{code, met.memory.ref}, receiver));
  if (!mine || !met.are_many) return {};
  return messages.send(to, std::as_bytes(std::span(met.around.near)), receiver);
}

// Its node waits for a leader: it answers every rank that lives, whatever has failed.
Status lead(Acquaintance& met, FirstMessages& messages, const Status& ready) {
  Status mine = ready;
  if (mine) mine = met.around.check_local();
  if (mine) met.memory = OfferedMemory::make(static_cast<int>(met.around.near.size()));
  if (!met.memory.made.bytes().empty()) fault_point(FaultPhase::open_made);
  for (std::size_t i = 1; i < met.around.near.size(); ++i) {
    const Status told = answer(met, messages, i, mine);
    if (mine) mine = told;
  }
  return mine;
}

Status follow(Acquaintance& met, FirstMessages& messages, const Status& ready, int& failed_rank) {
  Neighbourhood& around = met.around;
  const int leader = around.near_ranks().front();
  const auto local = [&] { return around.check_local(); };
  Answer answer;
  SHIMA_TRY(messages.receive_value(leader, answer, local));
  if (answer.code != 0) {
    failed_rank = leader;
    return fail_settled(static_cast<Code>(answer.code), 0,
                        [&] { return fmt::format("{}: rank {} failed", doing, leader); });
  }
  met.memory.ref = answer.memory;
  if (met.are_many)
    SHIMA_TRY(messages.receive(leader, std::as_writable_bytes(std::span(around.near)), local));
  return ready;
}

// Maps the node's memory. Null, if this rank cannot; that is logged.
std::shared_ptr<NodeSegment> attach_memory(const Acquaintance& met) {
  auto attached = caught([&] {
    return NodeSegment::attach(met.memory.ref, static_cast<int>(met.around.near.size()),
                               met.around.index());
  });
  if (attached) return *std::move(attached);
  const Status& making = met.memory.making;
  std::ignore = caught([&]() -> Status {
    log(LogLevel::warn, "opening a file: cannot {} the shared memory of this node: {}",
        making ? "attach" : "create", describe(making ? attached.error() : making.error()));
    return {};
  });
  return nullptr;
}

Result<std::shared_ptr<NodeSegment>> share(MPI_Comm comm, Acquaintance& met, const Status& ready) {
  Status mine = ready;
  int failed_rank = met.around.rank;
  if (met.messages) {
    FirstMessages& messages = *met.messages;
    mine = caught([&] {
      return met.around.is_leader() ? lead(met, messages, ready)
                                    : follow(met, messages, ready, failed_rank);
    });
  } else if (!met.memory.made.bytes().empty()) {
    fault_point(FaultPhase::open_made);
  }
  if (is_loss(mine)) return std::unexpected(mine.error());
  std::shared_ptr<NodeSegment> attached = mine ? attach_memory(met) : nullptr;
  fault_point(FaultPhase::open_joined);
  constexpr std::uint64_t not_attached = 1;  // less than any error
  const std::uint64_t word = mine && !attached ? not_attached : verdict_word(mine, failed_rank);
  const auto local = [&] { return met.around.check_local(); };
  SHIMA_TRY_ASSIGN(const std::uint64_t all, largest_over(comm, word, doing, local));
  SHIMA_TRY(verdict_of(all, mine, doing));
  return all == not_attached ? nullptr : attached;
}

}  // namespace

Result<std::shared_ptr<NodeSegment>> share_memory(MPI_Comm comm, Acquaintance& met,
                                                  const Status& ready) {
  auto shared = share(comm, met, ready);
  if (is_loss(status_of(shared)) && met.messages) met.messages->give_up();
  return shared;
}

}  // namespace shima
