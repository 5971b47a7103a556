// Text inside the HTML pages of reports.
#pragma once

#include <string>
#include <string_view>

namespace shima {

// The text with what HTML would take for its own written as entities; also right in attributes.
[[nodiscard]] std::string escaped(std::string_view text);

}  // namespace shima
