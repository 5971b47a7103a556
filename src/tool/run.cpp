// `shima run` changes nothing in mpiexec.  It starts
//
//     mpiexec -n 8 ... shima exec --mpi <what was found> prog args
//
// and each rank's `shima exec` sets LD_AUDIT (src/audit) and becomes the program.  No process of
// Shima stays in between, so stdin, signals and exit codes are the launcher's own. Only --stats
// keeps the command alive, to print the report when the job has ended. A launcher that the user
// names, `shima run mpirun -n 8 prog`, is started as it is, with LD_AUDIT in its environment.
#include "tool/run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <regex>

#include "base/log.h"
#include "base/process/launcher.h"
#include "file/striping.h"
#include "store/target/paths.h"
#include "tool/common/print_failure.h"
#include "tool/files/stripe_options.h"
#include "tool/launch/builds.h"
#include "tool/launch/detect_mpi.h"
#include "tool/launch/lapi_job.h"
#include "tool/launch/mpiexec.h"
#include "tool/launch/one_space.h"
#include "tool/launch/supervise.h"
#include "tool/launch/yield.h"
#include "tool/report/stats_report.h"
#include "tool/trace/trace_command.h"

namespace shima::tool {
namespace {

Outcome<void> check_hint(const std::string& hint) {
  const auto equals = hint.find('=');
  if (equals != 0 && equals != std::string::npos && hint.find(';') == std::string::npos) return {};
  return refuse("--hint " + hint, "a hint is key=value, without ';'",
                "write for example --hint cb_nodes=2");
}

// The hints of --stripe. Hints of the command line are appended after them and so override them.
Outcome<std::string> stripe_hints_of(const ProcessOptions& options) {
  std::string text;
  if (options.stripe.empty()) return text;
  auto hints = stripe_hints({.stripe = options.stripe, .order = {}, .regions = {}});
  if (hints) hints = with_some_targets(*hints);
  if (!hints) return std::unexpected(hints.error());
  const auto regions = regions_for(*hints);
  if (!regions) return refuse("--stripe " + options.stripe, regions.error().what, "correct it");
  const std::size_t count = regions->front().targets.size();
  if (hints->striping_unit != 0) text += fmt::format(";striping_unit={}", hints->striping_unit);
  text += fmt::format(";striping_factor={}", count);
  if (!hints->shima_targets.empty()) text += ";shima_targets=" + hints->shima_targets;
  return text.substr(1);
}

// PnetCDF from 1.15 on writes files without MPI-IO unless this hint names its MPI-IO driver.
void have_pnetcdf_use_mpiio() {
  static const std::regex driver(R"((^|;)\s*nc_driver\s*=)");
  constexpr const char* variable = "PNETCDF_HINTS";
  const std::string hints = environment_value(variable);
  if (std::regex_search(hints, driver)) return;
  setenv(variable, (hints + (hints.empty() ? "" : ";") + "nc_driver=mpiio").c_str(), 1);
  log(LogLevel::info, "{}: nc_driver=mpiio is added, so that PnetCDF's file access reaches Shima",
      variable);
}

// Before those in the environment: of two for one directory, the first counts.
Outcome<void> export_paths(const std::vector<std::string>& paths) {
  std::string all;
  for (const std::string& path : paths) all += path + ":";
  if (all.empty()) return {};
  setenv("SHIMA_PATHS", (all + environment_value("SHIMA_PATHS")).c_str(), 1);
  const auto checked = path_meant_by("/");
  if (!checked) return refuse("--map", checked.error().what, "correct it");
  return {};
}

// Hints and log level are passed in the environment. Hints of the command line are appended to
// those in the environment and so override them.
Outcome<void> export_settings(const ProcessOptions& options) {
  std::string hints = environment_value("SHIMA_HINTS");
  auto stripe = stripe_hints_of(options);
  if (!stripe) return std::unexpected(stripe.error());
  if (!stripe->empty()) hints += (hints.empty() ? "" : ";") + *stripe;
  for (const std::string& hint : options.hints) {
    if (auto status = check_hint(hint); !status) return status;
    hints += (hints.empty() ? "" : ";") + hint;
  }
  if (!options.hints.empty() || !stripe->empty()) setenv("SHIMA_HINTS", hints.c_str(), 1);
  if (!options.log_level.empty()) setenv("SHIMA_LOG", options.log_level.c_str(), 1);
  if (auto status = export_paths(options.paths); !status) return status;
  have_pnetcdf_use_mpiio();
  return {};
}

// A job that no launcher has named gets a name, so that `shima top` can tell which processes belong
// to it: HOST.PID of the process that has started it.
void name_job(bool is_rank) {
  const auto named = [](const char* variable) { return !environment_value(variable).empty(); };
  if (named(job_name_variable) || named(dse_job_variable)) return;
  if (is_rank && (named("PMIX_NAMESPACE") || named("SLURM_STEP_ID"))) return;
  setenv(job_name_variable, name_of_process(is_rank ? launcher_process() : getpid()).c_str(), 1);
}

Outcome<UsedMpi> used_mpi(const ProcessOptions& options) {
  return options.mpi.empty() ? detect_mpi(options.program) : mpi_from_user(options.mpi);
}

// A launcher must not become a task of the address space that its ranks share.
Outcome<void> tasks_need_program(const ProcessOptions& options) {
  if (!options.one_space || !is_launcher(options.program)) return {};
  const std::string& launcher = options.program.front();
  return refuse("--one-space " + launcher, "each rank must become a task by itself",
                fmt::format("write `{} ... shima exec --one-space prog`", launcher));
}

Outcome<std::string> make_stats_file() {
  const std::string directory = environment_value("TMPDIR");
  std::string name = (directory.empty() ? "/tmp" : directory) + "/shima-stats-XXXXXX";
  const int fd = mkstemp(name.data());
  if (fd < 0)
    return refuse(name, fmt::format("cannot be created ({})", std::strerror(errno)),
                  "set TMPDIR to a directory that can be written");
  close(fd);
  setenv("SHIMA_STATS", name.c_str(), 1);
  return name;
}

// Passes the detected MPI to each rank, so that it detects nothing.
Command rank_command(const UsedMpi& mpi, const ProcessOptions& process) {
  Command command{own_path().string(), "exec", "--mpi",
                  std::string(mpi.build == nullptr ? any_mpi : mpi.build->name), "--whole-job"};
  if (process.one_space) command.emplace_back("--one-space");
  command.emplace_back("--");
  command.insert(command.end(), process.program.begin(), process.program.end());
  return command;
}

// `mpirun -n 4 shima run prog` would start four jobs of one rank each.
Outcome<void> must_not_be_rank(const JobOptions& options) {
  const int size = launcher_number().size;
  if (options.ranks != 0 || size <= 1) return {};
  return refuse("shima run " + options.process.program.front(),
                fmt::format("a launcher has started this command as one of {} ranks", size),
                "write `shima exec` instead, or start another job in each rank with -n");
}

// The ranks that the user's launcher starts inherit the audit library.
Outcome<Command> users_command(const JobOptions& options) {
  const Command& command = options.process.program;
  if (options.ranks != 0 || !options.mpiexec.empty() || !options.mpiexec_arguments.empty())
    return refuse(
        "shima run " + command.front(),
        "this launcher starts the ranks, so -n, --mpiexec and --mpi-arg do not go with it",
        "give these options to the launcher, or name the program alone");
  if (auto status = export_audit(); !status) return std::unexpected(status.error());
  return with_forwarded_settings(command);
}

Outcome<Command> job_command(const JobOptions& options) {
  auto status = must_not_be_rank(options);
  if (status) status = tasks_need_program(options.process);
  if (!status) return std::unexpected(status.error());
  auto mpi = used_mpi(options.process);
  if (!mpi) return std::unexpected(mpi.error());
  status = must_be_installed(*mpi);
  if (!status) return std::unexpected(status.error());
  if (is_launcher(options.process.program)) return users_command(options);
  auto mpiexec = find_mpiexec(*mpi, options.mpiexec);
  if (!mpiexec) return std::unexpected(mpiexec.error());
  Command command =
      launcher_command(*mpiexec, std::max(options.ranks, 1), options.mpiexec_arguments);
  for (std::string& word : rank_command(*mpi, options.process)) command.push_back(std::move(word));
  return command;
}

Outcome<int> run_lapi_tasks(const JobOptions& options) {
  const ProcessOptions& process = options.process;
  const bool for_mpi = options.stats || !options.mpiexec.empty() ||
                       !options.mpiexec_arguments.empty() || !process.hints.empty() ||
                       !process.stripe.empty() || !process.mpi.empty();
  if (for_mpi)
    return refuse("shima run --lapi",
                  "only -n, --one-space, --transport, --trace, --html and --log go with it",
                  "leave out the options for MPI programs");
  if (!process.log_level.empty()) setenv("SHIMA_LOG", process.log_level.c_str(), 1);
  if (!options.transport.empty()) setenv("SHIMA_TRANSPORT", options.transport.c_str(), 1);
  if (options.ranks == 0 && !process.one_space) return run_lapi_launcher(process.program);
  return run_lapi_job(process.program, std::max(options.ranks, 1), process.one_space);
}

Outcome<int> run_mpi_job(const JobOptions& options) {
  if (!options.transport.empty())
    return refuse("--transport", "it goes with --lapi only", "leave it out");
  if (auto status = export_settings(options.process); !status)
    return std::unexpected(status.error());
  std::string stats_file;
  if (options.stats) {
    auto name = make_stats_file();
    if (!name) return std::unexpected(name.error());
    stats_file = *name;
  }
  if (options.process.one_space) prepare_launcher_for_tasks();
  auto command = job_command(options);
  const bool stays = options.stats || options.is_traced();
  if (command && !stays) return std::unexpected(become(*command));
  Outcome<int> result = command ? supervise(*command) : std::unexpected(command.error());
  if (result && options.stats) print_stats_report(stats_file);
  if (options.stats) unlink(stats_file.c_str());
  return result;
}

}  // namespace

Outcome<int> run_job(const JobOptions& options) {
  name_job(false);
  const auto run = options.lapi ? run_lapi_tasks : run_mpi_job;
  if (!options.is_traced()) return run(options);
  TraceOptions merge{.directory = {}, .trace = options.trace, .html = options.html};
  const auto directory = TraceDirectory::make(merge);
  if (!directory) return std::unexpected(directory.error());
  merge.directory = directory->path();
  const auto result = run(options);
  if (!result) return result;
  if (const auto merged = merge_traces(merge); !merged) complain(merged.error());
  return result;
}

Outcome<int> exec_process(const ProcessOptions& options) {
  if (auto status = tasks_need_program(options); !status) return std::unexpected(status.error());
  if (auto status = export_settings(options); !status) return std::unexpected(status.error());
  name_job(true);
  if (options.whole_job) setenv("SHIMA_WHOLE_JOB", "1", 1);
  yield_if_cores_are_few();
  auto mpi = used_mpi(options);
  if (!mpi) return std::unexpected(mpi.error());
  if (auto status = must_be_installed(*mpi); !status) return std::unexpected(status.error());
  if (auto status = export_audit(); !status) return std::unexpected(status.error());
  if (options.one_space) become_task(options.program);
  // Open MPI looks for a program to spawn in the working directory, too.
  return std::unexpected(
      become(options.program, options.spawned ? Places::path_and_working_directory : Places::path));
}

}  // namespace shima::tool
