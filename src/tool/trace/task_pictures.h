// Who moves bytes to and from whose memory, and who waits for whom, as pictures.
#pragma once

#include <string>

#include "tool/trace/trace_summary.h"

namespace shima::tool {

// A card of the page; empty if no call of the job has reached another task.
[[nodiscard]] std::string task_pictures(const TraceSummary& summary);

}  // namespace shima::tool
