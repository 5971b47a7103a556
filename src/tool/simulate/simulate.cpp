#include "tool/simulate/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "file/hints/hints.h"
#include "simulate/report.h"
#include "tool/common/print_failure.h"
#include "tool/common/progress.h"

namespace shima::tool {
namespace {

constexpr int most_ranks = 1 << 24;

Outcome<std::vector<int>> parse_ranks(const std::string& text) {
  std::vector<int> ranks;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    int count = 0;
    const auto [stop, error] = std::from_chars(text.data() + begin, text.data() + end, count);
    if (error != std::errc() || stop != text.data() + end || count < 1 || count > most_ranks)
      return refuse("--ranks " + text, "a number of ranks is from 1 to 16777216",
                    "write --ranks 512,4096");
    ranks.push_back(count);
    begin = end + 1;
  }
  std::ranges::sort(ranks);
  const auto repeated = std::ranges::unique(ranks);
  ranks.erase(repeated.begin(), repeated.end());
  return ranks;
}

Outcome<std::uint64_t> parse_size(const char* option, const std::string& text) {
  const auto bytes = parse_bytes(text);
  if (!bytes || *bytes < 0)
    return refuse(fmt::format("{} {}", option, text), "this is no number of bytes",
                  "write a number, and K, M or G if you like");
  return static_cast<std::uint64_t>(*bytes);
}

Outcome<void> set_machine_value(simulate::Machine& machine, const std::string& name, double value) {
  for (const simulate::MachineField& field : simulate::machine_fields) {
    if (field.name != name) continue;
    if (!(value >= 0) || (value == 0 && field.value != &simulate::Machine::shared_cores))
      return refuse(name, "a value of the machine is above 0", "measure it again");
    machine.*field.value = value;
    return {};
  }
  std::string names;
  for (const simulate::MachineField& field : simulate::machine_fields)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", field.name);
  return refuse(name, "the model has no such value", "use one of " + names);
}

Outcome<void> read_machine(const std::string& path, simulate::Machine& machine) {
  std::ifstream file(path);
  if (!file) return refuse(path, "the file cannot be read", "check its name and permissions");
  const auto values = nlohmann::json::parse(file, nullptr, false);
  if (!values.is_object())
    return refuse(path, "it is not a JSON object", "write {\"turn_us\": 20}");
  for (const auto& [name, value] : values.items()) {
    if (!value.is_number())
      return refuse(path, name + " is not a number", "write {\"turn_us\": 20}");
    if (const auto set = set_machine_value(machine, name, value.get<double>()); !set) return set;
  }
  return {};
}

Outcome<simulate::Machine> machine_of(const SimulateOptions& options) {
  simulate::Machine machine;
  if (!options.machine_file.empty())
    if (const auto read = read_machine(options.machine_file, machine); !read)
      return std::unexpected(read.error());
  for (const std::string& word : options.machine_values) {
    const auto equals = word.find('=');
    double value = -1;
    if (equals != std::string::npos)
      std::from_chars(word.data() + equals + 1, word.data() + word.size(), value);
    if (value < 0)
      return refuse("--set " + word, "a value is NAME=NUMBER", "write --set turn_us=20");
    if (const auto set = set_machine_value(machine, word.substr(0, equals), value); !set)
      return std::unexpected(set.error());
  }
  return machine;
}

Outcome<Tuning> tuning_of(const SimulateOptions& options) {
  Tuning tuning;
  tuning.max_agents = options.agents;
  tuning.subgroup_members = options.subgroup;
  const auto window = parse_size("--window", options.window);
  if (!window) return std::unexpected(window.error());
  tuning.window_bytes = *window;
  if (options.strategy != "auto")
    for (const Strategy strategy :
         {Strategy::disk_directed, Strategy::two_phase, Strategy::subgroup, Strategy::independent})
      if (simulate::name_of(strategy) == options.strategy) tuning.strategy = strategy;
  return tuning;
}

Outcome<simulate::Workload> workload_of(const SimulateOptions& options) {
  simulate::Workload workload;
  const auto shape = simulate::shape_named(options.pattern);
  if (!shape)
    return refuse("--pattern " + options.pattern, "there is no such pattern", "see --help");
  workload.shape = *shape;
  workload.ranks_per_node = options.ranks_per_node;
  workload.cores_per_node =
      options.cores_per_node == 0 ? options.ranks_per_node : options.cores_per_node;
  workload.round_robin = options.placement == "round_robin";
  workload.subfiles = options.targets;
  workload.direction = options.direction == "read" ? Direction::read : Direction::write;
  workload.cached = options.cached;
  const auto bytes = parse_size("--bytes-per-rank", options.bytes_per_rank);
  const auto piece = parse_size("--piece", options.piece);
  const auto unit = parse_size("--unit", options.unit);
  const auto tuning = tuning_of(options);
  if (!bytes) return std::unexpected(bytes.error());
  if (!piece) return std::unexpected(piece.error());
  if (!unit) return std::unexpected(unit.error());
  if (!tuning) return std::unexpected(tuning.error());
  workload.bytes_per_rank = *bytes;
  workload.piece_bytes = *piece;
  workload.unit_bytes = *unit;
  workload.tuning = *tuning;
  return workload;
}

Outcome<simulate::Request> request_of(const SimulateOptions& options) {
  simulate::Request request{
      .ranks = {}, .workload = {}, .machine = {}, .sampling = {options.samples, options.seed}};
  auto ranks = parse_ranks(options.ranks);
  if (!ranks) return std::unexpected(ranks.error());
  auto workload = workload_of(options);
  if (!workload) return std::unexpected(workload.error());
  const auto machine = machine_of(options);
  if (!machine) return std::unexpected(machine.error());
  request.ranks = *std::move(ranks);
  request.workload = *workload;
  request.machine = *machine;
  workload->ranks = request.ranks.back();
  if (const Status fits = check(*workload); !fits)
    return std::unexpected(failure_of("simulate", fits.error()));
  return request;
}

Outcome<void> write_text(const std::string& path, const std::string& text) {
  if (path.empty()) return {};
  if (path == "-") {
    fmt::print("{}", text);
    return {};
  }
  std::ofstream file(path);
  file << text << std::flush;
  if (!file) return refuse(path, "the file cannot be written", "check its directory and the space");
  return {};
}

}  // namespace

Outcome<int> simulate_calls(const SimulateOptions& options, simulate::CountAllocations count) {
  const auto request = request_of(options);
  if (!request) return std::unexpected(request.error());
  Result<simulate::Report> report;
  {
    Progress progress("simulate");
    report = caught([&] {
      return simulate::simulate(
          *request, simulate::Meter(count), [&](std::string_view doing, int done, int all) {
            progress.say(fmt::format("{} {:.0f} %", doing, 100.0 * done / std::max(all, 1)));
          });
    });
  }
  if (!report) return std::unexpected(failure_of("simulate", report.error()));
  for (const auto& written : {write_text(options.json_file, as_json(*report)),
                              write_text(options.html_file, as_html(*report))})
    if (!written) return std::unexpected(written.error());
  if (options.json_file != "-") fmt::print("{}", as_text(*report));
  const bool reached = std::ranges::all_of(report->limits, &simulate::Limit::reached);
  return options.check && !reached ? exit_limit_missed : 0;
}

}  // namespace shima::tool
