// The texts in a master file that was changed in place.
//
// Where a file cannot be replaced, the new text is written after the old one. The last whole text
// counts (decode_master), and the beginning of another one after it means nothing. Pure.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace shima {

// How long the first texts of a file are together, up to each of them that is whole.
[[nodiscard]] std::vector<std::size_t> ends_of_texts(std::string_view file);

}  // namespace shima
