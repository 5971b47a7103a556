// The way to other tasks' memory by LAPI: READ is a Get, WRITE a Put, as lapi.h defines them.
#pragma once

#include "capi/dsm/lapi_job.h"
#include "dsm/way.h"

namespace shima::capi {

// `bases`: where the memories of the tasks begin, in their owners. The job outlives the way.
[[nodiscard]] std::unique_ptr<dsm::Way> make_lapi_way(const LapiJob& job,
                                                      std::vector<std::uint64_t> bases);

}  // namespace shima::capi
