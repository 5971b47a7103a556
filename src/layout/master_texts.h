// Finds the texts in a master file that was changed in place.
//
// If a file cannot be replaced, the new text is appended to the old one. The last complete text
// counts (decode_master), and the beginning of another one after it is ignored. Pure.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace shima {

// The end offset of each complete text, in order.
[[nodiscard]] std::vector<std::size_t> ends_of_texts(std::string_view file);

}  // namespace shima
