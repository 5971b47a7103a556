// A shared memory of the interface.
#pragma once

#include "capi/dsm/lapi_job.h"
#include "dsm/memory.h"

// The job ends first: until then other tasks may store to the memory.
struct dsm {
  std::unique_ptr<shima::dsm::Memory> memory;
  std::unique_ptr<shima::capi::LapiJob> job;
};

namespace shima::capi {

// Collective: joins the job, donates memory and prepares the way to the other tasks. Bad
// `arguments` are an error on all tasks.
[[nodiscard]] Result<std::unique_ptr<::dsm>> open_memory(const Status& arguments,
                                                         std::uint64_t size_bytes, int way);
// Collective. The error of the last fence, if the memory could be freed anyway.
[[nodiscard]] Status close_memory(std::unique_ptr<::dsm> memory);

// Why no call may take the shortest way; in one word, so that it costs such a call one look.
namespace detour {
inline constexpr unsigned forked_child = 1;  // of the process that has opened a memory
inline constexpr unsigned traced = 2;
inline std::atomic<unsigned> reasons{0};
}  // namespace detour
[[nodiscard]] inline bool has_detour() {
  return detour::reasons.load(std::memory_order_relaxed) != 0;
}
[[nodiscard]] inline bool is_forked_child() {
  return (detour::reasons.load(std::memory_order_relaxed) & detour::forked_child) != 0;
}

}  // namespace shima::capi
