#include "lapi/handlers.h"

#include <fmt/format.h>

namespace shima::lapi {

void Handlers::set(int index, void* handler) {
  const std::lock_guard hold(mutex_);
  table_[static_cast<std::size_t>(index)] = handler;
}

void* Handlers::get(int index) {
  const std::lock_guard hold(mutex_);
  return table_[static_cast<std::size_t>(index)];
}

Result<void*> Handlers::find(std::uint64_t named) {
  const std::lock_guard hold(mutex_);
  if (named < most) {
    if (void* handler = table_[static_cast<std::size_t>(named)]) return handler;
    return fail(Code::bad_argument,
                fmt::format("no header handler has index {} here; register it with LAPI_Addr_set "
                            "before other tasks send to it",
                            named));
  }
  if (!memory_.allows(named, 1, Use::execute))
    return fail(Code::bad_argument,
                fmt::format("header handler {:#x} is not code of this task; exchange the addresses "
                            "of handlers with LAPI_Address_init",
                            named));
  for (const auto& [address, own] : recent_)
    if (address == named) return own;
  void* const own = reinterpret_cast<void*>(own_code_at(named));
  recent_[oldest_++ % recent_.size()] = {named, own};
  return own;
}

}  // namespace shima::lapi
