// Where the program calls: addresses as lines of its source, by addr2line(1).
#pragma once

#include "tool/trace/trace_set.h"

namespace shima::tool {

// Fills the texts of the sites that the events name. Without addr2line, or without debugging
// information, they stay "module+offset".
void name_call_sites(TraceSet& set);

// What addr2line has printed for one address (two lines), as a text; empty if it knows nothing.
[[nodiscard]] std::string site_text(const std::string& function, const std::string& place);

}  // namespace shima::tool
