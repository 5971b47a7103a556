#include "dse/plan/machine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/process/cpu_mask.h"
#include "dse/plan/words.h"

namespace shima::dse {
namespace {

constexpr std::size_t most_cores = CpuMask::most_cpus;

std::optional<Core> parse_core(std::string_view word) {
  const auto colon = word.find(':');
  if (colon == std::string_view::npos) return {};
  Core core;
  const auto place = parts_of(word.substr(0, colon), ".");
  if (place.size() != core.place.size()) return {};
  for (std::size_t i = 0; i < place.size(); ++i) {
    const auto number = parse_number(place[i]);
    if (!number) return {};
    core.place[i] = *number;
  }
  for (const std::string_view cpu : parts_of(word.substr(colon + 1), ",")) {
    const auto number = parse_number(cpu);
    if (!number || *number < 0 || *number >= CpuMask::most_cpus) return {};
    core.cpus.push_back(*number);
  }
  return core;
}

}  // namespace

std::string describe_cpus(const std::vector<int>& cpus) {
  return fmt::format("{}", fmt::join(cpus, ","));
}

std::string describe(const Machine& machine) {
  std::string text;
  for (const Core& core : machine)
    text += fmt::format("{}{}:{}", text.empty() ? "" : " ", fmt::join(core.place, "."),
                        describe_cpus(core.cpus));
  return text;
}

Result<Machine> parse_machine(std::string_view text) {
  Machine machine;
  for (const std::string_view word : words_of(text)) {
    auto core = parse_core(word);
    if (!core || machine.size() == most_cores)
      return fail(Code::bad_argument, fmt::format("'{}' is no description of a core", word));
    machine.push_back(*std::move(core));
  }
  if (machine.empty()) return fail(Code::bad_argument, "a machine without cores");
  return machine;
}

}  // namespace shima::dse
