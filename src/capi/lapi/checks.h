// Checks of arguments. Each error names the argument, its value and the rule.
#pragma once

#include "capi/lapi/contexts.h"

namespace shima::capi {

[[nodiscard]] LapiStatus check_task(const LapiContext& context, uint task);
[[nodiscard]] LapiStatus check_range(const LapiContext& context, uint task, ulong len,
                                     std::uint64_t target, const void* origin);
[[nodiscard]] LapiStatus check_vectors(const LapiContext& context, uint task,
                                       const lapi_vec_t* target, const lapi_vec_t* origin);
[[nodiscard]] LapiStatus check_vector(const lapi_vec_t* vector, bool is_origin);
[[nodiscard]] LapiStatus check_header(std::uint64_t handler, const void* header, uint len);

}  // namespace shima::capi

// Returns the error of a LapiStatus to the caller.
#define LAPI_TRY(expression)                                                                 \
  do {                                                                                       \
    if (auto tried = (expression); !tried) return std::unexpected(std::move(tried.error())); \
  } while (false)
