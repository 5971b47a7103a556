#include "mpiio/comm/introduction/many_ranks.h"

#include <algorithm>
#include <cstdint>
#include <span>

#include "mpiio/comm/introduction/byte_message.h"

namespace shima {
namespace {

// What a rank learns of rank 0's message.
Result<Neighbourhood> read(std::span<const std::byte> message, const FirstMeetings& meetings,
                           const NearProcess& own) {
  const auto wrong = [] { return fail(Code::internal, "a message of rank 0 was not understood"); };
  std::vector<std::int32_t> words;
  if (!take_list(message, words)) return wrong();
  Neighbourhood around;
  around.rank = meetings.rank();
  SHIMA_TRY_ASSIGN(around.topology, Topology::of_words(words));
  const auto nodes = static_cast<std::size_t>(around.topology.node_count());
  if (static_cast<std::size_t>(around.topology.size()) != meetings.size() ||
      message.size() != nodes * sizeof(NearProcess))
    return wrong();
  around.near.resize(around.near_ranks().size());
  message = message.subspan(static_cast<std::size_t>(around.node()) * sizeof(NearProcess));
  if (!take_values(message, std::span(around.near).first(1))) return wrong();
  around.near[static_cast<std::size_t>(around.index())] = own;
  return around;
}

}  // namespace

Result<Neighbourhood> ManyRanks::meet(FirstMeetings& meetings, const Status& ready) {
  const auto mine = caught([&]() -> Result<Place> {
    SHIMA_TRY(ready);
    return Place::own();
  });
  const auto places = meetings.gather_first(mine, {});
  const auto message = caught([&]() -> Result<std::vector<std::byte>> {
    SHIMA_TRY(status_of(places));
    return meetings.rank() == 0 ? survey(*places) : std::vector<std::byte>{};
  });
  const int failed_rank = places ? 0 : meetings.failed_rank();
  const auto told = meetings.broadcast(message, failed_rank, {});
  return caught([&]() -> Result<Neighbourhood> {
    SHIMA_TRY(status_of(message));
    SHIMA_TRY(status_of(told));
    return read(*told, meetings, mine->process);
  });
}

std::vector<std::byte> ManyRanks::survey(const Gathered<Place>& places) {
  places_ = places;
  topology_ = topology_of(places.size(), [&](std::size_t rank) { return places[rank]; });
  std::vector<NearProcess> leaders;
  std::size_t most = 0;
  for (int node = 0; node < topology_.node_count(); ++node) {
    const NodeRanks ranks = topology_.ranks_on(node);
    leaders.push_back(process_of(ranks.front()));
    most = std::max(most, ranks.size());
  }
  list_.reserve(most);
  const std::vector<std::int32_t> words = topology_.words();
  std::vector<std::byte> message;
  put_list(message, std::span(words));
  put_values(message, std::span<const NearProcess>(leaders));
  return message;
}

void ManyRanks::list_processes_of(int node) {
  const NodeRanks ranks = topology_.ranks_on(node);
  list_.clear();
  for (std::size_t i = 0; i < ranks.size(); ++i) list_.push_back(process_of(ranks[i]));
}

Status ManyRanks::tell_leaders(FirstMessages& messages, Neighbourhood& around) {
  const auto local = [&] { return around.check_local(); };
  if (!around.is_leader()) return {};
  if (around.rank != 0)
    return messages.receive(0, std::as_writable_bytes(std::span(around.near)), local);
  list_processes_of(0);
  std::ranges::copy(list_, around.near.begin());
  Status done;
  for (int node = 1; node < topology_.node_count(); ++node) {
    list_processes_of(node);
    const Status told =
        messages.send(topology_.ranks_on(node).front(), std::as_bytes(std::span(list_)), local);
    if (done) done = told;
  }
  return done;
}

}  // namespace shima
