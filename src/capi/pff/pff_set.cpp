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
    if (pids == nullptr || count < 1 || set == nullptr)
      return fail(
          Code::bad_argument,
          "joining a set: the processes or the result pointer is NULL, or the count is below 1");
    const shima::RollCall call{
        {pids, static_cast<std::size_t>(count)}, number, limit_of(timeout_ms)};
    auto made = std::make_unique<pff_set>();
    SHIMA_TRY_ASSIGN(made->members, shima::ProcessSet::meet(call));
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
