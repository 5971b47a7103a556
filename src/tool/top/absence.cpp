// Which tasks of a job a sample does not have, and how the user finds them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "tool/top/remote.h"
#include "tool/top/sample.h"

namespace shima::tool {
namespace {

struct Shown {
  std::size_t tasks = 0;
  int all = -1;  // -1: not known
  std::string job;
};

Shown shown_in(const Sample& sample) {
  Shown shown;
  std::set<int> ranks;
  std::size_t unnumbered = 0;
  for (const TaskSample& task : sample.tasks) {
    if (task.is_node()) continue;
    shown.job = task.job;
    shown.all = std::max(shown.all, task.tasks);
    if (task.rank >= 0)
      ranks.insert(task.rank);
    else
      ++unnumbered;
  }
  shown.tasks = ranks.size() + unnumbered;
  return shown;
}

std::vector<std::string> names_of(const Sample& sample, AbsentHost::Why why) {
  std::vector<std::string> names;
  for (const AbsentHost& host : sample.absent)
    if (host.why == why) names.push_back(host.name);
  return names;
}

// A job's name is what its processes say; the user may copy the command.
std::string as_word(const std::string& job) {
  const bool is_plain = std::ranges::all_of(job, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '_';
  });
  return is_plain ? job : in_quotes(job);
}

}  // namespace

bool lacks_tasks(const Sample& sample) {
  const Shown shown = shown_in(sample);
  return shown.all < 0 || shown.tasks < static_cast<std::size_t>(shown.all);
}

std::string absence_note(const Sample& sample) {
  using Why = AbsentHost::Why;
  const Shown shown = shown_in(sample);
  std::vector<std::string> notes;
  if (const auto names = names_of(sample, Why::not_asked); !names.empty())
    notes.push_back(fmt::format("not shown: tasks on {}; see them by: shima top {} --hosts {}",
                                fmt::join(names, ", "), as_word(shown.job), fmt::join(names, ",")));
  for (const auto& [why, what] : {std::pair(Why::silent, "does not answer by ssh"),
                                  std::pair(Why::no_task, "knows no task of this job")})
    for (const std::string& name : names_of(sample, why))
      notes.push_back(fmt::format("{} {}; check: ssh {} shima top", name, what, name));
  if (const auto names = names_of(sample, Why::asked); !names.empty())
    notes.push_back(fmt::format("asking {}", fmt::join(names, ", ")));
  if (notes.empty() && shown.tasks > 0 && shown.all >= 0 && lacks_tasks(sample))
    return fmt::format(
        "{} of {} tasks are shown; see those on other hosts by: shima top {} --hosts "
        "HOST,HOST",
        shown.tasks, shown.all, as_word(shown.job));
  return fmt::format("{}", fmt::join(notes, "; "));
}

}  // namespace shima::tool
