// Entry points of dse.h.
#include "shima/dse.h"

#include <fmt/format.h>

#include <algorithm>

#include "capi/dse/errors.h"
#include "capi/dse/own_job.h"

namespace {

using namespace shima;
using capi::OwnJob;

// The present topology, if it has the task.
Result<OwnJob::Shared> topology_with(OwnJob& job, int task) {
  if (task < 0 || task >= job.tasks())
    return fail(
        Code::bad_argument,
        fmt::format("there is no task {}; the job has the tasks 0 to {}", task, job.tasks() - 1));
  return job.topology();
}

Result<int> neighbor_of(OwnJob& job, int task, const char* name) {
  if (name == nullptr) return fail(Code::bad_argument, "no name of a neighbor");
  SHIMA_TRY_ASSIGN(const auto topology, topology_with(job, task));
  if (const auto found = topology->neighbor(task, name)) return *found;
  std::string known;
  for (const dse::Neighbor& one : topology->neighbors(task)) known += " " + one.name;
  return fail(Code::bad_count,
              fmt::format("task {} has no neighbor named '{}' in {}; it has:{}", task, name,
                          topology->text().substr(0, 100), known.empty() ? " none" : known));
}

}  // namespace

int dse_task() noexcept {
  return capi::guarded_dse([]() -> Result<int> {
    SHIMA_TRY_ASSIGN(const OwnJob* job, OwnJob::get());
    return job->task();
  });
}

int dse_tasks() noexcept {
  return capi::guarded_dse([]() -> Result<int> {
    SHIMA_TRY_ASSIGN(const OwnJob* job, OwnJob::get());
    return job->tasks();
  });
}

const char* dse_topology() noexcept {
  const char* text = nullptr;
  const int code = capi::guarded_dse([&]() -> Status {
    SHIMA_TRY_ASSIGN(OwnJob * job, OwnJob::get());
    text = job->keep(job->topology()->text());
    return {};
  });
  return code == 0 ? text : nullptr;
}

int dse_neighbor(const char* name) noexcept {
  return capi::guarded_dse([&]() -> Result<int> {
    SHIMA_TRY_ASSIGN(OwnJob * job, OwnJob::get());
    return neighbor_of(*job, job->task(), name);
  });
}

int dse_neighbor_of(int task, const char* name) noexcept {
  return capi::guarded_dse([&]() -> Result<int> {
    SHIMA_TRY_ASSIGN(OwnJob * job, OwnJob::get());
    return neighbor_of(*job, task, name);
  });
}

int dse_neighbors(int task) noexcept {
  return capi::guarded_dse([&]() -> Result<int> {
    SHIMA_TRY_ASSIGN(OwnJob * job, OwnJob::get());
    SHIMA_TRY_ASSIGN(const auto topology, topology_with(*job, task));
    return static_cast<int>(topology->neighbors(task).size());
  });
}

int dse_neighbor_at(int task, int index, const char** name) noexcept {
  return capi::guarded_dse([&]() -> Result<int> {
    SHIMA_TRY_ASSIGN(OwnJob * job, OwnJob::get());
    SHIMA_TRY_ASSIGN(const auto topology, topology_with(*job, task));
    const auto all = topology->neighbors(task);
    if (index < 0 || index >= static_cast<int>(all.size()))
      return fail(Code::bad_count,
                  fmt::format("task {} has {} neighbors; there is none with index {}", task,
                              all.size(), index));
    const dse::Neighbor& neighbor = all[static_cast<std::size_t>(index)];
    if (name != nullptr) *name = job->keep(neighbor.name);
    return neighbor.task;
  });
}

int dse_coordinates(int task, int* coordinates, int most) noexcept {
  return capi::guarded_dse([&]() -> Result<int> {
    if (most < 0 || (most > 0 && coordinates == nullptr))
      return fail(Code::bad_argument, "no room for coordinates");
    SHIMA_TRY_ASSIGN(OwnJob * job, OwnJob::get());
    SHIMA_TRY_ASSIGN(const auto topology, topology_with(*job, task));
    const auto all = topology->coordinates(task);
    std::copy_n(all.begin(), std::min(all.size(), static_cast<std::size_t>(most)), coordinates);
    return static_cast<int>(all.size());
  });
}

int dse_set_topology(const char* topology) noexcept {
  return capi::guarded_dse([&]() -> Status {
    if (topology == nullptr) return fail(Code::bad_argument, "no topology");
    SHIMA_TRY_ASSIGN(OwnJob * job, OwnJob::get());
    return job->change(topology);
  });
}
