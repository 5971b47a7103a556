// Recordings of `shima top`: a line that names the format, then a sample in each line.
//
// A recording that was cut off is read up to its last whole line.
#pragma once

#include <istream>
#include <string>
#include <vector>

#include "tool/common/failure.h"
#include "tool/top/sample.h"

namespace shima::tool {

inline constexpr int recording_version = 1;

// The first line, without its end.
[[nodiscard]] std::string recording_head();
// Whether a line is the first one of a recording that this version can read.
[[nodiscard]] bool is_recording_head(const std::string& line);

// All samples of a recording; `name` is for errors.
[[nodiscard]] Outcome<std::vector<Sample>> read_recording(std::istream& from,
                                                          const std::string& name);

}  // namespace shima::tool
