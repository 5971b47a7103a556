// The report that `shima run --stats` prints at the end of the job.
#pragma once

#include <string>
#include <vector>

namespace shima::tool {

// Prints to stderr the file to which the library appended one JSON object per closed file.
void print_stats_report(const std::string& stats_file);

// One such line as text; empty if it cannot be read.
[[nodiscard]] std::string format_stats_line(const std::string& json_line);

}  // namespace shima::tool
