#include "tool/simulate/simulate_options.h"

#include <cstdint>
#include <limits>

namespace shima::tool {
namespace {

constexpr int most = 1 << 24;

CLI::Option* add_word(CLI::App& command, const char* name, std::string& word, const char* help,
                      const char* type) {
  return command.add_option(name, word, help)->type_name(type)->capture_default_str();
}

CLI::Option* add_number(CLI::App& command, const char* name, int& number, int least,
                        const char* help) {
  return command.add_option(name, number, help)->type_name("N")->check(CLI::Range(least, most));
}

void add_ranks(CLI::App& command, SimulateOptions& options) {
  add_word(command, "--ranks", options.ranks, "The numbers of ranks to simulate", "N,N");
  add_number(command, "--ranks-per-node", options.ranks_per_node, 1, "Ranks of a node (128)");
  add_number(command, "--cores-per-node", options.cores_per_node, 1,
             "Cores of a node (as many as ranks)");
  add_word(command, "--placement", options.placement, "blocks or round_robin", "HOW")
      ->check(CLI::IsMember({"blocks", "round_robin"}));
}

void add_access(CLI::App& command, SimulateOptions& options) {
  add_word(command, "--pattern", options.pattern, "columns, blocks, irregular or one_rank", "SHAPE")
      ->check(CLI::IsMember({"columns", "blocks", "irregular", "one_rank"}));
  add_word(command, "--bytes-per-rank", options.bytes_per_rank, "Bytes that a rank accesses",
           "SIZE");
  add_word(command, "--piece", options.piece, "Bytes of a piece", "SIZE");
  add_word(command, "--direction", options.direction, "write or read", "DIRECTION")
      ->check(CLI::IsMember({"write", "read"}));
  command.add_flag("--cached", options.cached, "A read of bytes that are in the page cache");
  add_number(command, "--targets", options.targets, 1, "Subfiles of the file (1: a plain file)");
  add_word(command, "--unit", options.unit, "Bytes of a stripe", "SIZE");
}

void add_plan(CLI::App& command, SimulateOptions& options) {
  add_word(command, "--strategy", options.strategy, "auto, or a strategy to enforce", "STRATEGY")
      ->check(CLI::IsMember({"auto", "disk_directed", "two_phase", "subgroup", "independent"}));
  add_number(command, "--subgroup", options.subgroup, 0, "Ranks of a subgroup (0: all of a node)");
  add_number(command, "--agents", options.agents, 0, "The most agents (0: automatic)");
  add_word(command, "--window", options.window, "Bytes of a window (0: automatic)", "SIZE");
}

void add_results(CLI::App& command, SimulateOptions& options) {
  command.add_option("--machine", options.machine_file, "Values of the model, as JSON")
      ->type_name("FILE");
  command.add_option("--set", options.machine_values, "One value of the model; may be repeated")
      ->type_name("NAME=NUMBER")
      ->allow_extra_args(false);
  add_number(command, "--samples", options.samples, 2, "Ranks, nodes and agents to measure (6)");
  command.add_option("--seed", options.seed, "Which of them are chosen (1)")->type_name("N");
  command.add_option("--json", options.json_file, "File for all figures; - is stdout")
      ->type_name("FILE");
  command.add_option("--html", options.html_file, "File for a page with curves")->type_name("FILE");
  command.add_flag("--check", options.check, "Exit with 1 if a limit is missed");
}

}  // namespace

CLI::App* add_simulate_command(CLI::App& app, SimulateOptions& options) {
  CLI::App& command =
      *app.add_subcommand("simulate", "Plan collective calls of more ranks than fit here");
  add_ranks(command, options);
  add_access(command, options);
  add_plan(command, options);
  add_results(command, options);
  command.footer(app.get_footer());
  return &command;
}

}  // namespace shima::tool
