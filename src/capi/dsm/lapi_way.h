// The way to other tasks' memory by LAPI: READ is a Get, WRITE a Put, as lapi.h defines them.
#pragma once

#include "capi/dsm/lapi_job.h"
#include "dsm/way.h"

namespace shima::capi {

// The memory of a task.
struct Target {
  std::uint64_t base = 0;     // where it begins, in its owner
  bool may_be_copied = true;  // by LAPI, without a message: on this host
};

// `targets` are those of all tasks. The job outlives the way.
[[nodiscard]] std::unique_ptr<dsm::Way> make_lapi_way(const LapiJob& job,
                                                      std::vector<Target> targets);

}  // namespace shima::capi
