// The table of contexts that calls look at without a lock (contexts.h says how).
#pragma once

#include <memory>

#include "capi/lapi/contexts.h"

namespace shima::capi {

// A handle is the number of the context and a mark, so that other values are found out.
inline constexpr lapi_handle_t handle_mark = 0x4c415000;

// Lets calls find a context. A number is used once.
void show_context(std::size_t number, std::unique_ptr<LapiContext> context);
// Lets calls find it no more. False if another thread has done so.
[[nodiscard]] bool hide_context(std::size_t number);
// At the end of the process, for contexts that are being deleted; for a second at most.
void wait_until_deleted();

}  // namespace shima::capi
