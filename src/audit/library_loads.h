// How code of ours learns that the process has loaded a library: the audit library counts.
//
// The code requests a library whose name is this prefix and the address of a zero word in
// hexadecimal. The audit library finds no such file, sets the word to 1, and adds 1 at each library
// that is loaded afterwards. A word that stays 0 is not counted.
#pragma once

#include <string_view>

namespace shima::audit {

inline constexpr std::string_view library_loads_prefix = "shima-library-loads:";

}  // namespace shima::audit
