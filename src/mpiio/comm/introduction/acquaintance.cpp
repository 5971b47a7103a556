#include "mpiio/comm/introduction/acquaintance.h"

#include <utility>

#include "group/node/node_segment.h"
#include "mpiio/comm/introduction/many_ranks.h"

namespace shima {
namespace {

// What all ranks tell where they are few.
struct Introduction {
  Place place;
  SharedRef memory;  // of rank 0: that of all ranks, in case they are on one node
};

Neighbourhood neighbourhood_in(const Gathered<Introduction>& all, int rank) {
  const auto place_of = [&](std::size_t i) { return all[i].place; };
  Neighbourhood around{rank, topology_of(all.size(), place_of), {}};
  const NodeRanks near = around.near_ranks();
  for (std::size_t i = 0; i < near.size(); ++i)
    around.near.push_back(place_of(static_cast<std::size_t>(near[i])).process);
  return around;
}

// Few ranks: all learn all. Whether they are on one node.
Result<bool> meet_few(FirstMeetings& meetings, const Status& ready, Acquaintance& met,
                      Status& last) {
  if (ready && meetings.rank() == 0)
    met.memory = OfferedMemory::make(static_cast<int>(meetings.size()));
  const auto mine = caught([&]() -> Result<Introduction> {
    SHIMA_TRY(ready);
    return Introduction{Place::own(), met.memory.ref};
  });
  SHIMA_TRY_ASSIGN(const auto all, meetings.gather(mine, {}));
  const Introduction first = all[0];
  met.memory.ref = first.memory;
  last = caught([&]() -> Status {
    met.around = neighbourhood_in(all, meetings.rank());
    return {};
  });
  return all.all_of(
      [&](const Introduction& other) { return other.place.node == first.place.node; });
}

}  // namespace

OfferedMemory OfferedMemory::make(int member_count) {
  auto buffer = caught([&] { return NodeSegment::make(member_count); });
  OfferedMemory offered;
  offered.making = status_of(buffer);
  if (buffer) offered.made = *std::move(buffer);
  offered.ref = offered.made.ref();
  return offered;
}

Result<Acquaintance> look_around(MPI_Comm comm, FirstMeetings& meetings, const Status& ready,
                                 Status& last) {
  Acquaintance met;
  ManyRanks many;
  met.around.rank = meetings.rank();
  met.are_many = !meetings.are_few();
  if (met.are_many) {
    auto around = many.meet(meetings, ready);
    last = status_of(around);
    if (around) met.around = *std::move(around);
  } else {
    SHIMA_TRY_ASSIGN(const bool on_one_node, meet_few(meetings, ready, met, last));
    if (on_one_node) return met;
    met.memory = {};
  }
  const auto local = [&] { return met.around.check_local(); };
  SHIMA_TRY_ASSIGN(FirstMessages messages, FirstMessages::begin(comm, last, local));
  met.messages.emplace(std::move(messages));
  if (met.are_many) last = many.tell_leaders(*met.messages, met.around);
  return met;
}

}  // namespace shima
