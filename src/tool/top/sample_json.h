// Samples as JSON: of `shima top --once --json`, and in recordings. docs/top-format.md describes
// it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tool/top/sample.h"

namespace shima::tool {

// One line, without its end.
[[nodiscard]] std::string to_json(const Sample& sample);
// Nothing if the text is not a sample. Members that are missing have their default values, unknown
// ones are ignored.
[[nodiscard]] std::optional<Sample> sample_from_json(std::string_view text);

}  // namespace shima::tool
