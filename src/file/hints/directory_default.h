// The default striping of new files in a directory.
//
// The file .shima-default in the directory contains striping hints as lines key=value, with the
// rules of hints, and comments (#). It applies to files in the directory itself, not to those in
// subdirectories. Hints of the program or the user take precedence, hint by hint.
#pragma once

#include <string>

#include "file/hints/hints.h"

namespace shima {

inline constexpr const char* directory_default_name = ".shima-default";

// A hint other than the striping hints, or an invalid value, is an error.
[[nodiscard]] Result<Hints> parse_directory_default(std::string_view text);
[[nodiscard]] std::string encode_directory_default(const Hints& hints);

// `hints`, completed by the default of the directory of `path`. An unreadable default is logged and
// ignored.
[[nodiscard]] Hints with_directory_default(Hints hints, const std::string& path);

}  // namespace shima
