#include "mpiio/comm/node_services.h"

#include <cstdlib>

#include "base/log.h"
#include "mpiio/comm/private_comm.h"

namespace shima {
namespace {

struct Addresses {
  ServiceAddress pointer;
  ServiceAddress hub;
};

// A rank that exits after MPI_Finalize is not lost, also if the program has freed no communicator.
void leave_at_exit() {
  static const int registered = std::atexit([] {
    if (!has_world()) leave_all();
  });
  static_cast<void>(registered);
}

Addresses start_services(const NodePlace& place, MessageGround& ground, std::shared_ptr<Hub>& hub) {
  Addresses made;
  const auto addresses = listening_addresses(own_addresses(), place.other_nodes);
  if (auto pointers = PointerService::start(addresses)) {
    ground.pointer_service = *std::move(pointers);
    made.pointer = ground.pointer_service->address();
  } else {
    log(LogLevel::warn, "opening a file: shared file pointers are not available: {}",
        describe(pointers.error()));
  }
  hub = Liveness::start_hub(addresses, place.node_count);
  if (hub) made.hub = hub->address();
  return made;
}

}  // namespace

Status join_services(FirstMeetings& meetings, const Peers& local, Result<NodePlace> place,
                     MessageGround& ground, Status& last) {
  Addresses addresses;
  std::shared_ptr<Hub> hub;
  last = status_of(place);
  if (place && place->rank == 0)
    last = caught([&]() -> Status {
      addresses = start_services(*place, ground, hub);
      return {};
    });
  const Status told = meetings.broadcast(addresses, local);
  if (!told && hub) hub->leave();
  SHIMA_TRY(told);
  if (addresses.pointer.endpoint_count == 0) ground.pointer_service.reset();
  if (!last) return {};
  last = caught([&]() -> Status {
    leave_at_exit();
    if (place->rank != 0 && addresses.pointer.endpoint_count != 0)
      ground.pointer_client = std::make_shared<PointerClient>(addresses.pointer);
    ground.liveness = Liveness::join(std::move(place->watched), addresses.hub, std::move(hub));
    return {};
  });
  return {};
}

}  // namespace shima
