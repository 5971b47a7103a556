#include "tool/top/sample.h"

#include <fmt/format.h>

#include <algorithm>

namespace shima::tool {
namespace {

constexpr std::array writing{
    Counted::write,          Counted::collective_write, Counted::nonblocking_write, Counted::put,
    Counted::active_message, Counted::dsm_write,        Counted::served_write};
constexpr std::array reading{Counted::read, Counted::collective_read, Counted::nonblocking_read,
                             Counted::get,  Counted::dsm_read,        Counted::served_read};

template <class Kinds>
std::uint64_t bytes_of(const TaskSample& task, const Kinds& kinds) {
  std::uint64_t sum = 0;
  for (const Counted kind : kinds) sum += task.of(kind).bytes;
  return sum;
}

// How often a task has begun the calls in which this one meets others; nothing: it takes no part.
const std::uint32_t* meetings_of(const TaskSample& other, const TaskSample& task) {
  if (task.file.empty()) return other.kind == task.kind ? &other.met : nullptr;
  const auto found = std::ranges::find(other.files, task.key, &FileSample::key);
  return found == other.files.end() ? nullptr : &found->met;
}

bool is_same_task(const TaskSample& a, const TaskSample& b) {
  return a.host == b.host && a.pid == b.pid;
}

WaitReason reason_in_meeting(const Sample& sample, const TaskSample& task) {
  const std::uint32_t* const own = meetings_of(task, task);
  std::vector<int> late, busy;
  for (const TaskSample& other : sample.tasks) {
    if (is_same_task(other, task) || other.job != task.job || other.is_node()) continue;
    const std::uint32_t* const met = meetings_of(other, task);
    if (own == nullptr || met == nullptr) continue;
    if (*met < *own)
      late.push_back(other.rank);
    else if (*met == *own && other.call != call::none && other.asleep_ms == 0)
      busy.push_back(other.rank);
  }
  if (!late.empty())
    return {late, fmt::format("waits for {}, which {} not called", rank_list(late),
                              late.size() == 1 ? "has" : "have")};
  if (!busy.empty()) return {busy, fmt::format("waits for {} at work", rank_list(busy))};
  return {{}, "waits for tasks that are not shown"};
}

}  // namespace

std::uint64_t TaskSample::bytes_written() const { return bytes_of(*this, writing); }
std::uint64_t TaskSample::bytes_read() const { return bytes_of(*this, reading); }

std::uint64_t TaskSample::calls() const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < counted.size(); ++i)
    if (i != static_cast<std::size_t>(Counted::wait)) sum += counted[i].calls;
  return sum;
}

std::string rank_list(std::vector<int> ranks) {
  std::ranges::sort(ranks);
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    text += text.empty() ? "" : ", ";
    text += last == i ? fmt::format("{}", ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[last]);
    i = last + 1;
  }
  return (ranks.size() == 1 ? "rank " : "ranks ") + text;
}

WaitReason wait_reason(const Sample& sample, const TaskSample& task) {
  if (task.has_ended || task.asleep_ms == 0) return {};
  if (task.waits_for >= 0)
    return {{task.waits_for}, fmt::format("waits for rank {}", task.waits_for)};
  if (call::is_meeting(task.call)) return reason_in_meeting(sample, task);
  if (task.call == call::lapi_wait_counter) return {{}, "waits for a counter to grow"};
  if (task.queued > 0)
    return {{}, fmt::format("waits for {} operations in the background", task.queued)};
  return {{}, "waits"};
}

}  // namespace shima::tool
