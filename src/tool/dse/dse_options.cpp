#include "tool/dse/dse_options.h"

namespace shima::tool {

CLI::App* add_dse_run(CLI::App& app, DseOptions& options) {
  CLI::App& dse = *app.add_subcommand("dse", "Parallel programs on several hosts");
  dse.require_subcommand(1);
  dse.footer("The manual: shima-dse(1).");
  CLI::App& run = *dse.add_subcommand("run", "Start tasks on hosts, and stay with them");
  run.add_option("-f,--hosts", options.hosts_file,
                 "The hosts: a line HOST [slots=N] for each (default: this one)")
      ->type_name("FILE");
  run.add_option("-n,--np", options.tasks,
                 "How many tasks to start (default: as many as the topology has, or 1)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  run.add_option("--topology", options.topology,
                 "Which tasks are neighbors: ring, mesh:4x2, torus:4x2, hypercube:3 or graph:FILE "
                 "(default ring)")
      ->type_name("TOPOLOGY");
  run.add_option("--bind", options.bind, "Bind each task to its core (default none)")
      ->type_name("core|none")
      ->check(CLI::IsMember({"core", "none"}));
  run.add_option("--stdin", options.input, "Which task gets the standard input (default 0)")
      ->type_name("TASK|all|none");
  run.add_flag("--tag", options.tag, "Begin each line of output with the number of its task");
  run.add_option("--launcher", options.launcher,
                 "What starts the daemons on the hosts (default auto)")
      ->type_name("auto|ssh|slurm|prrte")
      ->check(CLI::IsMember({"auto", "ssh", "slurm", "prrte"}));
  run.add_option("--ssh", options.ssh,
                 "The command to use for ssh (default: SHIMA_DSE_SSH, or ssh)")
      ->type_name("COMMAND");
  run.add_flag("--survive", options.survive, "Let the others go on when a task is killed");
  run.add_flag("--show", options.show, "Only show which task would run where");
  run.add_flag("--verbose", options.verbose, "Show which task runs where, and as which process");
  run.footer("The manual: shima-dse(1).");
  return &run;
}

CLI::App* add_dse_daemon(CLI::App& run) {
  CLI::App& daemon =
      *run.get_parent()->add_subcommand("daemon", "What `shima dse run` starts on each host");
  daemon.group("");
  return &daemon;
}

}  // namespace shima::tool
