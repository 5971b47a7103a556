// How new files in a folder are striped where nobody says otherwise.
//
// The file .shima-default in the folder holds striping hints, as lines key=value with the rules of
// hints, and comments (#). It counts for the files in the folder itself, not in those below. What a
// program or a user says wins, hint by hint.
#pragma once

#include <string>

#include "file/hints.h"

namespace shima {

inline constexpr const char* folder_default_name = ".shima-default";

// Hints of other kinds, and values that break a rule, are errors.
[[nodiscard]] Result<Hints> parse_folder_default(std::string_view text);
[[nodiscard]] std::string encode_folder_default(const Hints& hints);

// `hints`, with what they leave open as the folder of `path` has it. A default that cannot be read
// is told of in the log, and none.
[[nodiscard]] Hints with_folder_default(Hints hints, const std::string& path);

}  // namespace shima
