// The sources of hints, and their precedence.
//
// Precedence: environment (SHIMA_HINTS before ROMIO_HINTS) > the program's MPI_Info > default, so
// that a user can override a program without changing it. MPI permits an implementation to ignore a
// hint, so a bad value is never an error: it is ignored, with one log line at level warn. Unknown
// keys are ignored with a log line at level info.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "file/hints/hints.h"

namespace shima {

// "key=value;key=value", with spaces around keys and values removed; the format of SHIMA_HINTS.
[[nodiscard]] std::vector<HintSetting> parse_hint_list(std::string_view text);

// Lines "key value", with # comments; the format of the file that ROMIO_HINTS names. The first line
// of a key counts, as in ROMIO.
[[nodiscard]] std::vector<HintSetting> parse_hint_file(std::string_view text);

// The hints from this process's environment, weakest first; read once.
[[nodiscard]] const std::vector<HintSetting>& environment_hints();

// `base` with the program's settings, then those in `stronger`, applied.
[[nodiscard]] Hints resolve(const Hints& base, std::span<const HintSetting> program,
                            std::span<const HintSetting> stronger = environment_hints());

}  // namespace shima
