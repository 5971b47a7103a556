#include "base/process/launcher.h"

#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <mutex>
#include <set>
#include <utility>

#include "base/log.h"

namespace shima {
namespace {

std::optional<int> number_in(const Environment& environment, const char* name) {
  const auto text = environment(name);
  if (!text) return std::nullopt;
  int number = 0;
  const auto parsed = std::from_chars(text->data(), text->data() + text->size(), number);
  const bool whole = parsed.ec == std::errc{} && parsed.ptr == text->data() + text->size();
  return whole ? std::optional(number) : std::nullopt;
}

// The variables of one kind of launcher: the number of all ranks, and of the ranks on this node.
struct Sizes {
  const char* all;
  const char* here;
};

constexpr Sizes sizes_of_launchers[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},  // Open MPI
    {"PMI_SIZE", "MPI_LOCALNRANKS"},                         // Hydra of MPICH and its family
};

// srun without one of these launchers. The shell of an interactive allocation is a step of one
// task, too, and may start a launcher that starts ranks elsewhere: those have the variables above.
bool slurm_says_one_node(const Environment& environment) {
  return environment("SLURM_STEP_ID").has_value() &&
         number_in(environment, "SLURM_STEP_NUM_NODES") == 1 &&
         (environment("PMI_RANK") || environment("PMIX_RANK"));
}

}  // namespace

std::optional<std::string> own_environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

bool launched_on_one_node(const Environment& environment) {
  bool told = false;
  for (const Sizes& sizes : sizes_of_launchers) {
    if (!environment(sizes.here)) continue;  // another launcher's: srun sets only PMI_SIZE
    const auto all = number_in(environment, sizes.all);
    if (!all || all != number_in(environment, sizes.here)) return false;
    told = true;
  }
  return told || slurm_says_one_node(environment);
}

LauncherPlace launcher_place(const Environment& environment) {
  LauncherPlace place;
  if (const auto space = environment("PMIX_NAMESPACE")) {
    place.job = *space;
    place.rank = number_in(environment, "PMIX_RANK").value_or(-1);
  } else {
    place.rank = number_in(environment, "PMI_RANK").value_or(-1);
    place.spawned = environment("PMI_SPAWNED").has_value();
  }
  return place;
}

std::string name_of_process(int pid) {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return std::string(host.data()) + "." + std::to_string(pid);
}

std::string job_name(const Environment& environment) {
  for (const char* variable : {dse_job_variable, job_name_variable})
    if (const auto job = environment(variable); job && !job->empty()) return *job;
  if (const auto job = environment("PMIX_NAMESPACE")) return *job;
  const auto step = environment("SLURM_STEP_ID");
  if (const auto job = environment("SLURM_JOB_ID"); job && step)
    return "slurm." + *job + "." + *step;
  return name_of_process(::getpid());
}

// An inner launcher's variables come first: `srun -n 1 mpiexec -n 4 prog` is a job of four.
LauncherNumber launcher_number(const Environment& environment) {
  constexpr std::pair<const char*, const char*> known[] = {
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
      {"PMI_RANK", "PMI_SIZE"},
      {"PALS_RANKID", "PALS_NRANKS"},
      {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
      {"SHIMA_DSE_TASK", "SHIMA_DSE_TASKS"},
  };
  for (const auto& [rank, size] : known) {
    const auto own = number_in(environment, rank);
    const auto all = number_in(environment, size);
    if (own && all) return {*own, *all};
  }
  return {.rank = number_in(environment, "PMIX_RANK").value_or(-1)};  // prterun says no count
}

std::string launcher_hosts(const Environment& environment) {
  if (const auto hosts = environment(dse_hosts_variable)) return *hosts;
  // A launcher may have been started as a step of its own, on some of its hosts.
  const auto tasks = number_in(environment, "SLURM_STEP_NUM_TASKS");
  const bool is_step = tasks && *tasks == launcher_number(environment).size;
  const auto hosts = environment(is_step ? "SLURM_STEP_NODELIST" : "SLURM_JOB_NODELIST");
  return hosts.value_or(std::string());
}

std::chrono::seconds seconds_setting(const char* name, std::chrono::seconds usual) {
  static std::mutex lock;
  static auto* const told = new std::set<std::string>;
  const auto text = own_environment(name);
  if (!text) return usual;
  char* end = nullptr;
  const long value = std::strtol(text->c_str(), &end, 10);
  if (end != text->c_str() && *end == '\0' && value > 0) return std::chrono::seconds(value);
  const std::lock_guard hold(lock);
  if (told->insert(name).second)
    log(LogLevel::warn, "{}={}: not a positive number of seconds; write for example {}", name,
        *text, usual.count());
  return usual;
}

}  // namespace shima
