#include "tool/pvas_run.h"

#include <sys/wait.h>

#include "pvas/launch/program.h"
#include "pvas/launch/root_process.h"
#include "pvas/launch/spawn.h"
#include "pvas/launch/stand_in.h"

namespace shima::tool {
namespace {

std::unexpected<Failure> refuse_task(const std::string& program, const Error& error) {
  return refuse(program, "it cannot be a task: " + describe(error), "run it without a space");
}

Result<std::vector<pvas::StartedTask>> start_all(const PvasOptions& options,
                                                 const pvas::SpawnRequest& request) {
  const pvas::WhichSpace space{pvas::socket_name_for(pvas::random_key())};
  std::vector<pvas::StartedTask> tasks;
  for (int i = 0; i < options.tasks; ++i) {
    SHIMA_TRY_ASSIGN(UniqueFd socket, pvas::connect_or_make_root(space));
    SHIMA_TRY_ASSIGN(pvas::StartedTask task, pvas::StartedTask::start(std::move(socket), request));
    tasks.push_back(std::move(task));
  }
  return tasks;
}

int code_of(const std::vector<int>& statuses) {
  for (const int status : statuses) {
    if (WIFSIGNALED(status)) return exit_signalled_base + WTERMSIG(status);
    if (WEXITSTATUS(status) != 0) return WEXITSTATUS(status);
  }
  return 0;
}

}  // namespace

Outcome<int> run_tasks(const PvasOptions& options) {
  const std::string& name = options.program.front();
  const auto program = pvas::find_program(name, options.program);
  if (!program) return refuse_task(name, program.error());
  auto request = pvas::like_this_process(*program);
  if (!request) return refuse_task(name, request.error());
  request->order.process_group = pvas::StandIn::group_for_tasks();
  request->expected = options.tasks;
  request->launcher = getpid();
  pvas::StandIn stand_in;
  auto tasks = start_all(options, *request);
  if (!tasks) return refuse_task(name, tasks.error());
  const auto statuses = stand_in.wait_for(*tasks);
  if (!statuses) return refuse_task(name, statuses.error());
  return code_of(*statuses);
}

}  // namespace shima::tool
