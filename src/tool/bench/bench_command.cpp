#include "tool/bench/bench_command.h"

#include <cstdlib>
#include <filesystem>

#include "tool/common/process.h"

namespace shima::tool {

Outcome<int> run_bench(const std::vector<std::string>& arguments) {
  const auto program = (own_directory() / "../share/shima/bench/shima_bench.py").lexically_normal();
  std::error_code ignored;
  if (!std::filesystem::exists(program, ignored))
    return refuse("bench", program.string() + " is not installed", "install Shima again");
  const auto python = find_program("python3");
  if (!python)
    return refuse("bench", "it needs python3, and there is none in PATH",
                  "install Python 3.10 or newer, for example with `apt-get install python3`");
  ::setenv("SHIMA_BENCH_TOOL", own_path().c_str(), 1);
  // -B: the directory of an installed program is not ours to write to.
  Command command{python->string(), "-B", program.string()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return std::unexpected(become(command));
}

}  // namespace shima::tool
