// A trace set in the JSON format of trace events, which Perfetto and chrome://tracing open.
#pragma once

#include <ostream>

#include "tool/trace/trace_set.h"

namespace shima::tool {

// A process of the output for each rank: its calls on one track, those in the background on as
// many as overlap, and likewise those that are runs of short calls.
void write_chrome_trace(const TraceSet& set, std::ostream& to);

}  // namespace shima::tool
