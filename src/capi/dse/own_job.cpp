#include "capi/dse/own_job.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "dse/job_variables.h"
#include "dse/plan/words.h"
#include "dse/topology_file.h"

namespace shima::capi {
namespace {

Status lapi_status(int code) {
  if (code == LAPI_SUCCESS) return {};
  std::array<char, LAPI_MAX_ERR_STRING> text{};
  LAPI_Msg_string(code, text.data());
  const Code meant = code == LAPI_ERR_TASK_LOST          ? Code::peer_lost
                     : code == LAPI_ERR_MEMORY_EXHAUSTED ? Code::no_memory
                                                         : Code::internal;
  return fail(meant, text.data());
}

// FNV-1a; 0 stands for an error.
std::uint64_t number_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash == 0 ? 1 : hash;
}

}  // namespace

// Never destroyed: threads of the program may call in until the process ends.
Result<OwnJob*> OwnJob::get() {
  static const auto* const made = new Result<OwnJob*>(from_environment());
  return *made;
}

Result<OwnJob*> OwnJob::from_environment() {
  const auto text_of = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  const auto task = dse::parse_number(text_of(dse::task_variable));
  const auto tasks = dse::parse_number(text_of(dse::tasks_variable));
  if (!task || !tasks || *task < 0 || *task >= *tasks)
    return fail(Code::bad_handle,
                "this process is not a task of `shima dse run`; start the program with it");
  auto topology = dse::Topology::parse(text_of(dse::topology_variable), *tasks);
  if (!topology)
    return fail(Code::bad_handle,
                fmt::format("{} is not what `shima dse run` sets: {}", dse::topology_variable,
                            topology.error().what.c_str()));
  return new OwnJob(*task, *std::move(topology));
}

OwnJob::Shared OwnJob::topology() {
  const std::lock_guard hold(mutex_);
  return topology_;
}

const char* OwnJob::keep(const std::string& text) {
  const std::lock_guard hold(mutex_);
  return kept_.insert(text).first->c_str();
}

// All tasks exchange a number for the topology that they want. A task that cannot have its topology
// takes part too, so that all have the same outcome.
Status OwnJob::change(const std::string& text) {
  const std::lock_guard hold_changing(changing_);
  auto wanted = caught([&] { return dse::read_topology(text, tasks_); });
  SHIMA_TRY(agree(wanted ? number_of(wanted->text()) : 0));
  if (!wanted) return std::unexpected(wanted.error());
  auto shared = std::make_shared<const dse::Topology>(*std::move(wanted));
  const std::lock_guard hold(mutex_);
  topology_ = std::move(shared);
  return {};
}

Status OwnJob::agree(std::uint64_t own) {
  if (!has_joined_) {
    lapi_info_t info{};
    SHIMA_TRY(lapi_status(LAPI_Init(&lapi_, &info)));
    has_joined_ = true;
  }
  std::vector<lapi_long_t> all(static_cast<std::size_t>(tasks_));
  SHIMA_TRY(lapi_status(LAPI_Address_init64(lapi_, own, all.data())));
  if (own == 0) return {};  // its own error says more
  for (std::size_t task = 0; task < all.size(); ++task) {
    if (all[task] == 0)
      return fail(Code::not_same, fmt::format("dse_set_topology: task {} has failed in it; its "
                                              "message says why",
                                              task));
    if (all[task] != own)
      return fail(Code::not_same,
                  fmt::format("dse_set_topology: task {} has asked for another topology than task "
                              "{}; all tasks give the same",
                              task, task_));
  }
  return {};
}

}  // namespace shima::capi
