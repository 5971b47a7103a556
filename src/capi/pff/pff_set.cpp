#include "capi/pff/errors.h"
#include "capi/pff/handles.h"

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
    // The other processes wait for this one, and get its error too.
    std::unique_ptr<pff_set> made;
    call.ready = shima::caught([&]() -> Status {
      made = std::make_unique<pff_set>();
      return set != nullptr ? Status{}
                            : fail(Code::bad_argument, "joining a set: the result pointer is NULL");
    });
    SHIMA_TRY_ASSIGN(auto members, shima::ProcessSet::meet(call));
    made->members = std::move(members);
    *set = made.release();
    return {};
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
