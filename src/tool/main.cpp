// The command `shima`: its subcommands and their sources.
//
//   shima run    start an MPI job under Shima           launch.cpp
//   shima exec   the same for one process of a job      launch.cpp
//   shima info   what is installed and what works       info.cpp
//   shima mount  show striped files as ordinary ones    mount.cpp
//   shima umount the reverse                            mount.cpp
//   shima pvas run  programs in one address space       pvas_run.cpp
//   shima top    what the tasks of a job do            top/top_command.cpp
//   shima trace  the traces of a job's processes       trace/trace_command.cpp
//   shima dse    parallel programs on several hosts     dse/dse_options.cpp
//   shima iod    serve targets to other machines        iod_command.cpp
//   shima simulate  planning of collective calls at scale   simulate_options.cpp
//   shima bench  the experiments of the documents       bench_command.cpp
//   shima create, stat, ls, cp, cat, rm, mv, restripe, fsck: files   file_options.cpp
//
// All words from the program's name on belong to the program, even if they have the form of an
// option of shima. So the command line is cut there before CLI11 parses it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <optional>
#include <span>

#include "dse/daemon.h"
#include "tool/bench/bench_command.h"
#include "tool/common/print_failure.h"
#include "tool/dse/dse_options.h"
#include "tool/files/file_commands.h"
#include "tool/files/file_options.h"
#include "tool/files/mount.h"
#include "tool/iod/iod_command.h"
#include "tool/pvas_run.h"
#include "tool/report/info.h"
#include "tool/run.h"
#include "tool/simulate/count_allocations.h"
#include "tool/simulate/simulate_options.h"
#include "tool/top/top_options.h"
#include "tool/trace/trace_options.h"

namespace {

using namespace shima::tool;

constexpr const char* footer = "The manual: shima(1).";

std::string full_name(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : full_name(*parent) + " " + app.get_name();
}

// CLI11's usage line does not know that a program follows the options.
struct ProgramFormatter : CLI::Formatter {
  std::string make_usage(const CLI::App* app, std::string) const override {
    return fmt::format("usage: {} [options] program [arguments]\n", full_name(*app));
  }
};

// fsck uses exit code 2 for another result.
int refused(const std::string& subcommand, const Failure& failure) {
  complain(failure);
  return subcommand == "fsck" ? exit_unchecked : exit_refused;
}

void add_process_options(CLI::App& command, ProcessOptions& options) {
  command.add_option("--hint", options.hints, "An MPI-IO hint for every file; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command
      .add_option("--stripe", options.stripe,
                  "Stripe the files that the program creates: unit=1M,targets=4,order=a+b")
      ->type_name("STRIPE");
  command
      .add_option("--map", options.paths,
                  "The files that the program sees below DIRECTORY are on an I/O node, at "
                  "iod://HOST:PORT/NAME; may be repeated")
      ->type_name("DIRECTORY=PLACE")
      ->allow_extra_args(false);
  command
      .add_option("--log", options.log_level, "Log level: off, error, warn, info, debug or trace")
      ->type_name("LEVEL")
      ->check(CLI::IsMember({"off", "error", "warn", "info", "debug", "trace"}));
  command.add_option("--mpi", options.mpi, "The MPI to use, instead of detecting it")
      ->type_name("BUILD|LIBMPI|any");
  command.add_flag("--one-space", options.one_space,
                   "Make the ranks of a node tasks of one address space");
  command.formatter(std::make_shared<ProgramFormatter>());
  command.footer(footer);
}

void add_job_options(CLI::App& command, JobOptions& options) {
  command.add_option("-n,--np", options.ranks, "How many ranks to start (default 1)")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 24));
  command.add_flag("--stats", options.stats, "Print statistics of each file at the end of the job");
  command.add_option("--trace", options.trace, "Write all calls as a Chrome trace (Perfetto)")
      ->type_name("FILE");
  command.add_option("--html", options.html, "Write a page about all calls, with advice")
      ->type_name("FILE");
  command.add_flag("--lapi", options.lapi,
                   "Start N tasks of a LAPI job (lapi.h) on this machine; without -n, let a "
                   "launcher start them");
  command
      .add_option("--transport", options.transport,
                  "How LAPI tasks on different hosts exchange data (default auto)")
      ->type_name("auto|tcp|ucx")
      ->check(CLI::IsMember({"auto", "tcp", "ucx"}));
  command.add_option("--mpiexec", options.mpiexec, "The launcher to use")->type_name("PATH");
  command
      .add_option("--mpi-arg", options.mpiexec_arguments,
                  "An argument for mpiexec; may be repeated")
      ->type_name("ARG")
      ->allow_extra_args(false);
  add_process_options(command, options.process);
}

CLI::App* add_exec(CLI::App& app, ProcessOptions& options) {
  CLI::App& command = *app.add_subcommand(
      "exec", "Run one process of a job, and the programs that it starts, under Shima");
  add_process_options(command, options);
  command
      .add_flag("--whole-job", options.whole_job, "All ranks of this job are started in this way")
      ->group("");
  command.add_flag("--spawned", options.spawned, "MPI_Comm_spawn starts this process")->group("");
  return &command;
}

CLI::App* add_pvas_run(CLI::App& app, PvasOptions& options) {
  auto* pvas = app.add_subcommand("pvas", "Programs in one address space");
  pvas->require_subcommand(1);
  pvas->footer(footer);
  CLI::App& command = *pvas->add_subcommand("run", "Start programs as tasks of one address space");
  command.add_option("-n,--np", options.tasks, "How many tasks to start (default 1)")
      ->type_name("N")
      ->check(CLI::Range(1, 512));
  command.formatter(std::make_shared<ProgramFormatter>());
  command.footer(footer);
  return &command;
}

CLI::App* add_mount(CLI::App& app, MountOptions& options) {
  CLI::App& command =
      *app.add_subcommand("mount", "Show a directory's striped files as ordinary ones");
  command.add_option("DIR", options.directory, "The directory with striped files")->required();
  command.add_option("MOUNTPOINT", options.mount_point, "An empty directory at which to show it")
      ->required();
  command.add_flag("-f,--foreground", options.foreground, "Do not go to the background");
  command.add_flag("--allow-other", options.allow_other, "Allow access by other users");
  command.add_option("--log-file", options.log_file, "File for messages of the background process")
      ->type_name("FILE");
  command.footer(footer);
  return &command;
}

CLI::App* add_umount(CLI::App& app, std::string& mount_point) {
  auto* command = app.add_subcommand("umount", "Unmount a directory mounted by shima mount");
  command->add_option("MOUNTPOINT", mount_point, "Where it is mounted")->required();
  command->footer(footer);
  return command;
}

CLI::App* add_iod(CLI::App& app, IodOptions& options) {
  CLI::App& command =
      *app.add_subcommand("iod", "Serve targets of this machine to others, as an I/O node");
  auto* listen = command.add_option("--listen", options.listen, "The address to listen at");
  listen->type_name("HOST:PORT");
  command
      .add_option("--target", options.targets,
                  "A target to serve, and its directory here; may be repeated")
      ->type_name("NAME=DIR")
      ->allow_extra_args(false);
  command
      .add_option("--directory", options.directories,
                  "A directory to serve with the files in it, by path; may be repeated")
      ->type_name("NAME=DIR")
      ->allow_extra_args(false);
  command
      .add_option("--status", options.status_of,
                  "Instead: ask the I/O node at this address what it serves")
      ->type_name("HOST:PORT")
      ->excludes(listen);
  command
      .add_option("--key", options.key_file,
                  "The file with the key of clients that act as the user who runs the node")
      ->type_name("FILE");
  command
      .add_option("--keys", options.keys_file,
                  "A file with lines \"USER KEY-FILE [TARGET,...]\": keys of users, who act as "
                  "themselves")
      ->type_name("FILE");
  command.footer(footer);
  return &command;
}

// Cuts off the words after `bench`: they belong to the benchmark, --help included.
std::vector<std::string> take_bench_words(int& argc, char** argv) {
  if (argc < 2 || std::string_view(argv[1]) != "bench") return {};
  std::vector<std::string> words(argv + 2, argv + argc);
  argc = 2;
  return words;
}

// The position of the program's name in the command line of `command`, whose words begin at
// `first`. The value of an option is the next word, unless it follows a '='.
int find_program_word(const CLI::App& command, int first, int argc, char** argv) {
  static char long_np[] = "--np";
  for (int i = first; i < argc; ++i) {
    if (std::string_view(argv[i]) == "-np") argv[i] = long_np;  // as mpirun has it
    const std::string word = argv[i];
    if (word == "--" || !word.starts_with('-')) return i;
    const auto* option = command.get_option_no_throw(word);
    if (option != nullptr && option->get_items_expected_max() > 0) ++i;
  }
  return argc;
}

// A command that starts a program.
struct Starter {
  CLI::App* command;
  Command* program;
};

// Where the options of `command` begin in the command line, if it is the one that was given.
std::optional<int> first_option(const CLI::App& command, int argc, char** argv) {
  const CLI::App* parent = command.get_parent();
  if (parent == nullptr) return 1;
  const auto before = first_option(*parent, argc, argv);
  if (!before || *before >= argc || command.get_name() != argv[*before]) return {};
  return *before + 1;
}

// Cuts the program and its arguments off the end of the command line.
void take_program(std::span<const Starter> starters, int& argc, char** argv) {
  for (const Starter& starter : starters) {
    const auto first = first_option(*starter.command, argc, argv);
    const int start = first ? find_program_word(*starter.command, *first, argc, argv) : argc;
    if (start >= argc) continue;
    starter.program->assign(argv + start, argv + argc);
    if (starter.program->front() == "--") starter.program->erase(starter.program->begin());
    argc = start;
    return;
  }
}

Outcome<void> must_name_program(std::span<const Starter> starters) {
  for (const auto& [command, program] : starters) {
    if (*command && program->empty())
      return refuse(full_name(*command), "no program was named",
                    "write `" + full_name(*command) + " [options] program [arguments]`");
  }
  return {};
}

// The exit code if the command line asks for help or the version, or is wrong.
std::optional<int> parse(CLI::App& app, const std::string& subcommand, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help_or_version) {
    return app.exit(help_or_version);
  } catch (const CLI::ParseError& error) {
    const bool known = !app.get_subcommands().empty();
    return refused(subcommand,
                   {"command line", error.what(),
                    known ? "see `shima " + subcommand + " --help`" : "see `shima --help`"});
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Shima: a parallel-I/O runtime for unmodified MPI programs", "shima");
  app.set_version_flag("--version", "shima " SHIMA_VERSION);
  app.require_subcommand(1);
  app.footer(footer);

  JobOptions job;
  ProcessOptions process;
  MountOptions mount;
  std::string mount_point;
  bool as_json = false;
  auto* run = app.add_subcommand("run", "Start an MPI job under Shima");
  auto* exec = add_exec(app, process);
  auto* info = app.add_subcommand("info", "Show what is installed and what works here");
  add_job_options(*run, job);
  info->add_flag("--json", as_json, "Print as JSON");
  info->footer(footer);
  auto* mount_command = add_mount(app, mount);
  auto* umount_command = add_umount(app, mount_point);
  PvasOptions tasks;
  auto* pvas_run = add_pvas_run(app, tasks);
  DseOptions distributed;
  auto* dse_run = add_dse_run(app, distributed);
  auto* dse_daemon = add_dse_daemon(*dse_run);
  dse_run->formatter(std::make_shared<ProgramFormatter>());
  SimulateOptions simulation;
  auto* simulate = add_simulate_command(app, simulation);
  IodOptions node;
  auto* iod = add_iod(app, node);
  auto* bench =
      app.add_subcommand("bench", "Run the experiments of the documents that Shima implements");
  Action chosen;
  add_file_commands(app, chosen);
  add_top_command(app, chosen);
  add_trace_command(app, chosen);
  const std::string subcommand = argc > 1 ? argv[1] : "";
  const auto starters = std::to_array<Starter>({{run, &job.process.program},
                                                {exec, &process.program},
                                                {pvas_run, &tasks.program},
                                                {dse_run, &distributed.program}});
  take_program(starters, argc, argv);
  const auto bench_words = take_bench_words(argc, argv);
  if (const auto code = parse(app, subcommand, argc, argv)) return *code;

  if (const auto named = must_name_program(starters); !named)
    return refused(subcommand, named.error());
  const Outcome<int> result = chosen            ? chosen()
                              : *info           ? print_info(as_json)
                              : *mount_command  ? mount_directory(mount)
                              : *umount_command ? unmount(mount_point)
                              : *pvas_run       ? run_tasks(tasks)
                              : *dse_run        ? run_dse(distributed)
                              : *dse_daemon     ? shima::dse::run_daemon()
                              : *iod            ? run_iod(node)
                              : *bench          ? run_bench(bench_words)
                              : *simulate       ? simulate_calls(simulation, count_allocations)
                              : *run            ? run_job(job)
                                                : exec_process(process);
  return result ? *result : refused(subcommand, result.error());
}
