#include "tool/top/top_options.h"

#include <memory>

namespace shima::tool {
namespace {

void describe(CLI::App& command, TopOptions& options) {
  command.add_option("JOB", options.job,
                     "The job, or the process ID of `shima run` or a task (default: the only job)");
  command.add_flag("--once", options.once, "Print one sample and exit");
  command.add_flag("--json", options.json, "With --once: print JSON");
  auto* record =
      command.add_option("--record", options.record, "Write the samples to a file; - is stdout");
  record->type_name("FILE");
  command.add_option("--replay", options.replay, "Show a recording")
      ->type_name("FILE")
      ->excludes(record);
  command.add_option("--interval", options.interval_s, "Seconds between samples (default 1)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.05, 3600.0));
  command.add_option("--samples", options.samples, "Exit after so many samples")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 30));
  auto* hosts = command.add_option("--hosts", options.hosts,
                                   "Ask these hosts by ssh (default: those that the job names)");
  hosts->type_name("HOST,HOST")->delimiter(',');
  command.add_flag("--here", options.here, "Ask no other host")->excludes(hosts);
  options.shell = "ssh -o BatchMode=yes -o ConnectTimeout=5";
  command.add_option("--rsh", options.shell, "The command to use instead of ssh")
      ->type_name("COMMAND");
  command.add_flag("--local", options.local, "Stay although the job has no task here")->group("");
}

}  // namespace

void add_top_command(CLI::App& app, std::function<Outcome<int>()>& chosen) {
  const auto options = std::make_shared<TopOptions>();
  CLI::App& command = *app.add_subcommand("top", "Show what the tasks of a running job do");
  describe(command, *options);
  command.footer(app.get_footer());
  command.callback([options, &chosen] { chosen = [options] { return run_top(*options); }; });
}

}  // namespace shima::tool
