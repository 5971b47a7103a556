#include "dse/job_variables.h"

#include <unistd.h>

#include <algorithm>
#include <array>

namespace shima::dse {

bool is_of_another_job(std::string_view name) {
  constexpr std::array<std::string_view, 8> beginnings{
      "PMI_",        "PMIX_",        "OMPI_COMM_WORLD_", "PALS_",
      "SLURM_LOCAL", "SLURM_PROCID", "SLURM_NODEID",     "SLURM_STEP"};
  constexpr std::array<std::string_view, 9> names{
      job_variable,      task_variable, tasks_variable,    host_variable,    hosts_variable,
      topology_variable, "SHIMA_LAPI",  "MPI_LOCALNRANKS", "MPI_LOCALRANKID"};
  return std::ranges::count(names, name) > 0 ||
         std::ranges::any_of(beginnings,
                             [&](std::string_view one) { return name.starts_with(one); });
}

std::vector<std::string> environment_for_tasks() {
  std::vector<std::string> kept;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view line(*entry);
    if (!is_of_another_job(line.substr(0, line.find('=')))) kept.emplace_back(line);
  }
  return kept;
}

}  // namespace shima::dse
