// `shima bench`: the experiments of the documents that Shima implements.
//
// The benchmark is a Python program, installed in share/shima/bench. The command only finds it and
// Python, and becomes it.
#pragma once

#include <string>
#include <vector>

#include "tool/common/failure.h"

namespace shima::tool {

// All words after `bench`. Returns only on failure.
[[nodiscard]] Outcome<int> run_bench(const std::vector<std::string>& arguments);

}  // namespace shima::tool
