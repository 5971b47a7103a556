// The environment of the tasks of a job.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/process/launcher.h"

namespace shima::dse {

// Set for every task. SHIMA_DSE_TASK and SHIMA_DSE_TASKS are read by base/process/launcher.cpp too.
inline constexpr const char* job_variable = "SHIMA_DSE_JOB";            // HOST.PROCESS of `run`
inline constexpr const char* task_variable = "SHIMA_DSE_TASK";          // from 0
inline constexpr const char* tasks_variable = "SHIMA_DSE_TASKS";        // how many
inline constexpr const char* host_variable = "SHIMA_DSE_HOST";          // as the job names it
inline constexpr const char* hosts_variable = dse_hosts_variable;       // of all tasks
inline constexpr const char* topology_variable = "SHIMA_DSE_TOPOLOGY";  // Topology::text()

// Whether a variable says which process of another job a process is: tasks do not inherit it.
[[nodiscard]] bool is_of_another_job(std::string_view name);
// The environment of this process without those.
[[nodiscard]] std::vector<std::string> environment_for_tasks();

}  // namespace shima::dse
