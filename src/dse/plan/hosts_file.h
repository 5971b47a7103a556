// The hosts of a job, as a file lists them: "HOST [slots=N]" a line; '#' begins a comment.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace shima::dse {

struct Host {
  std::string name;
  int slots = 0;  // how many tasks it takes; 0: one for each of its cores
  friend bool operator==(const Host&, const Host&) = default;
};

// At least one host, none twice. `source` names the text in errors.
[[nodiscard]] Result<std::vector<Host>> parse_hosts(std::string_view text, std::string_view source);

}  // namespace shima::dse
