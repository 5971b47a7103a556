// The report of a trace as one page of HTML, which needs nothing else.
#pragma once

#include <string>

#include "tool/trace/trace_summary.h"

namespace shima::tool {

[[nodiscard]] std::string trace_page(const TraceSet& set, const TraceSummary& summary);

}  // namespace shima::tool
