// The report that `shima run --stats` prints when the job is over.
#pragma once

#include <string>
#include <vector>

namespace shima::tool {

// Prints, to stderr, the file that the library appended one JSON object a closed file to.
void print_stats_report(const std::string& stats_file);

// One such line as text; what cannot be read gives an empty string.
[[nodiscard]] std::string format_stats_line(const std::string& json_line);

}  // namespace shima::tool
