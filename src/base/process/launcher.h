// The launcher's description of the job in a process's environment, readable before MPI has
// started.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace shima {

// The value of an environment variable, if it is set.
using Environment = std::function<std::optional<std::string>(const char* name)>;
[[nodiscard]] std::optional<std::string> own_environment(const char* name);
// A number of seconds that the user sets in an environment variable. `usual` if it is not set, or,
// with a warning, if it is not a positive number.
[[nodiscard]] std::chrono::seconds seconds_setting(const char* name, std::chrono::seconds usual);

// Whether the launcher states that all ranks of the job run on this node. False if it does not, or
// if two nested launchers contradict each other.
[[nodiscard]] bool launched_on_one_node(const Environment& environment = own_environment);

// Distinguishes the processes of a node, if the launcher sets enough variables.
struct LauncherPlace {
  std::string job;       // the job of the processes that share an MPI_COMM_WORLD; empty: its number
                         // is not in the environment
  int rank = -1;         // -1: unknown
  bool spawned = false;  // by MPI_Comm_spawn; such a job has no name
};
[[nodiscard]] LauncherPlace launcher_place(const Environment& environment = own_environment);

// The variable by which `shima run` names the job to the processes that it starts.
inline constexpr const char* job_name_variable = "SHIMA_JOB";
// The same of `shima dse run`; a job inside another one.
inline constexpr const char* dse_job_variable = "SHIMA_DSE_JOB";
// A name for the job of this process: the one that `shima run` or the launcher has given, else
// HOST.PID of the process itself.
[[nodiscard]] std::string job_name(const Environment& environment = own_environment);
// HOST.PID of a process of this machine.
[[nodiscard]] std::string name_of_process(int pid);

// The hosts of the job's tasks, as far as the launcher says them: a list
// (base/process/host_list.h). Of a launcher inside an allocation of Slurm: the hosts of the
// allocation.
[[nodiscard]] std::string launcher_hosts(const Environment& environment = own_environment);
// The variable by which `shima dse run` says them.
inline constexpr const char* dse_hosts_variable = "SHIMA_DSE_HOSTS";

// The number of this process in its job and their count, as MPI's launchers, srun, PALS and
// `shima dse run` say it.
struct LauncherNumber {
  int rank = -1;
  int size = -1;
  [[nodiscard]] bool is_known() const { return rank >= 0 || size >= 0; }
};
[[nodiscard]] LauncherNumber launcher_number(const Environment& environment = own_environment);

}  // namespace shima
