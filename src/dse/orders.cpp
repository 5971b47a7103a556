#include "dse/orders.h"

#include "base/process/cpu_mask.h"
#include "lapi/way/job_memory.h"

namespace shima::dse {

std::string pack(const StartOrder& order) {
  Packed packed;
  packed.number(order.job_tasks).text(order.meeting).text(order.directory);
  packed.texts(order.program).texts(order.environment);
  packed.number(static_cast<std::int64_t>(order.tasks.size()));
  for (const TaskOrder& task : order.tasks) {
    packed.number(task.task).number(task.has_input ? 1 : 0);
    packed.number(static_cast<std::int64_t>(task.cpus.size()));
    for (const int cpu : task.cpus) packed.number(cpu);
  }
  return packed.bytes();
}

Result<StartOrder> unpack_start(std::string_view data) {
  Unpacked unpacked(data);
  StartOrder order;
  order.job_tasks = unpacked.count(lapi::most_tasks);
  order.meeting = unpacked.text();
  order.directory = unpacked.text();
  order.program = unpacked.texts();
  order.environment = unpacked.texts();
  order.tasks.resize(static_cast<std::size_t>(unpacked.count(order.job_tasks)));
  for (TaskOrder& task : order.tasks) {
    task.task = unpacked.count(order.job_tasks - 1);
    task.has_input = unpacked.count(1) == 1;
    task.cpus.resize(static_cast<std::size_t>(unpacked.count(CpuMask::most_cpus)));
    for (int& cpu : task.cpus) cpu = unpacked.count(CpuMask::most_cpus - 1);
  }
  if (!unpacked.is_whole() || order.program.empty() || order.job_tasks == 0)
    return fail(Code::bad_argument, "a malformed order to start tasks");
  return order;
}

}  // namespace shima::dse
