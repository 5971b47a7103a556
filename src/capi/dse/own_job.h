// The job of this process, as `shima dse run` has described it in the environment.
#pragma once

#include <lapi.h>

#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "base/result.h"
#include "dse/plan/topology.h"

namespace shima::capi {

class OwnJob {
 public:
  using Shared = std::shared_ptr<const dse::Topology>;

  // The one of this process; an error if it is no task.
  [[nodiscard]] static Result<OwnJob*> get();
  [[nodiscard]] int task() const { return task_; }
  [[nodiscard]] int tasks() const { return tasks_; }
  // The present topology.
  [[nodiscard]] Shared topology();
  // Collective.
  [[nodiscard]] Status change(const std::string& text);
  // The same text, valid until the process ends.
  [[nodiscard]] const char* keep(const std::string& text);

 private:
  OwnJob(int task, dse::Topology topology)
      : task_(task),
        tasks_(topology.tasks()),
        topology_(std::make_shared<dse::Topology>(std::move(topology))) {}
  [[nodiscard]] static Result<OwnJob*> from_environment();
  [[nodiscard]] Status agree(std::uint64_t own);

  int task_;
  int tasks_;
  std::mutex mutex_;
  Shared topology_;
  std::set<std::string> kept_;
  std::mutex changing_;
  bool has_joined_ = false;
  lapi_handle_t lapi_ = 0;
};

}  // namespace shima::capi
