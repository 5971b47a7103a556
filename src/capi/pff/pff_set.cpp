#include <span>
#include <string>
#include <vector>

#include "capi/pff/errors.h"
#include "capi/pff/handles.h"
#include "group/set/nodes_set.h"
#include "net/key_proof.h"
#include "store/remote/place.h"
#include "store/target/target.h"

namespace {

using shima::Code;
using shima::fail;
using shima::Result;
using shima::Status;
using shima::capi::guarded;

std::optional<std::chrono::milliseconds> limit_of(int timeout_ms) {
  if (timeout_ms < 0) return {};
  return std::chrono::milliseconds(timeout_ms);
}

// The other processes wait for this one, and get its error too.
template <class Call, class Meet>
Status join(Call& call, pff_set** set, Meet meet) {
  std::unique_ptr<pff_set> made;
  call.ready = shima::caught([&]() -> Status {
    made = std::make_unique<pff_set>();
    return set != nullptr ? Status{}
                          : fail(Code::bad_argument, "joining a set: the result pointer is NULL");
  });
  SHIMA_TRY_ASSIGN(made->members, meet(call));
  *set = made.release();
  return {};
}

template <class Ask>
int ask(const pff_set* set, Ask question) noexcept {
  return guarded([&]() -> Result<int> {
    if (set == nullptr) return fail(Code::bad_argument, "the set of processes is NULL");
    return question(*set->members);
  });
}

}  // namespace

int pff_set_join(const pid_t* pids, int count, uint64_t number, int timeout_ms,
                 pff_set** set) noexcept {
  return guarded([&]() -> Status {
    if (pids == nullptr || count < 1)
      return fail(Code::bad_argument,
                  "joining a set: the processes are NULL, or the count is below 1");
    shima::RollCall call{{pids, static_cast<std::size_t>(count)}, number, limit_of(timeout_ms)};
    return join(call, set, shima::ProcessSet::meet);
  });
}

int pff_set_join_hosts(const pff_place* places, int count, uint64_t number, int timeout_ms,
                       const char* meeting, pff_set** set) noexcept {
  return guarded([&]() -> Status {
    if (places == nullptr || count < 1)
      return fail(Code::bad_argument,
                  "joining a set: the processes are NULL, or the count is below 1");
    const auto address = shima::remote::parse_node(meeting == nullptr ? "" : meeting);
    if (!address || address->host.empty())
      return fail(Code::bad_argument, "joining a set: the address of the meeting is not HOST:PORT");
    SHIMA_TRY_ASSIGN(const std::string key_file, shima::iod_key_file());
    std::vector<shima::SetPlace> all;
    for (const pff_place& place : std::span(places, static_cast<std::size_t>(count)))
      all.push_back({place.host == nullptr ? "" : place.host, place.pid});
    shima::NodesCall call{.places = all,
                          .number = number,
                          .timeout = limit_of(timeout_ms),
                          .meeting_host = address->host,
                          .meeting_port = address->port,
                          .key = {}};
    SHIMA_TRY_ASSIGN(call.key, shima::read_key(key_file));
    return join(call, set, shima::meet_over_nodes);
  });
}

int pff_set_member(const pff_set* set) noexcept {
  return ask(set, [](const shima::ProcessSet& members) { return members.index(); });
}

int pff_set_count(const pff_set* set) noexcept {
  return ask(set, [](const shima::ProcessSet& members) { return members.size(); });
}

int pff_set_meet(pff_set* set) noexcept {
  return guarded([&]() -> Status {
    if (set == nullptr) return fail(Code::bad_argument, "the set of processes is NULL");
    return set->members->barrier();
  });
}

void pff_set_leave(pff_set* set) noexcept { delete set; }
