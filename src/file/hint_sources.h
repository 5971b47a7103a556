// The sources of hints, and their precedence.
//
// Precedence: environment (SHIMA_HINTS before ROMIO_HINTS) > the program's MPI_Info > default, so
// that a user can overrule a program without changing it. MPI lets an implementation ignore a hint,
// therefore a bad value is never an error: it is ignored, with one line at level warn. Unknown keys
// are ignored with a line at level info.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "file/hints.h"

namespace shima {

// "key=value;key=value", spaces around keys and values dropped; the form of SHIMA_HINTS.
[[nodiscard]] std::vector<HintSetting> parse_hint_list(std::string_view text);

// Lines "key value", with # comments; the form of the file that ROMIO_HINTS names.
[[nodiscard]] std::vector<HintSetting> parse_hint_file(std::string_view text);

// The hints of this process's environment, weakest first; read once.
[[nodiscard]] const std::vector<HintSetting>& environment_hints();

// `base` changed by the program's settings and those by `stronger`.
[[nodiscard]] Hints resolve(const Hints& base, std::span<const HintSetting> program,
                            std::span<const HintSetting> stronger = environment_hints());

}  // namespace shima
