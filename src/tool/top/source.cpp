#include "tool/top/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace shima::tool {
namespace {

struct Job {
  int tasks = 0;
  std::string program;
  std::uint64_t up_ms = 0;
};

std::map<std::string, Job> jobs_in(const Sample& all) {
  std::map<std::string, Job> jobs;
  for (const TaskSample& task : all.tasks) {
    if (task.has_ended) continue;
    Job& job = jobs[task.job];
    ++job.tasks;
    job.program = task.program;
    job.up_ms = std::max(job.up_ms, task.up_ms);
  }
  return jobs;
}

std::string list_of(const std::map<std::string, Job>& jobs) {
  std::string text;
  for (const auto& [name, job] : jobs)
    text += fmt::format("\n  {:<32} {:>4} tasks of {}, since {} s", name, job.tasks, job.program,
                        job.up_ms / 1000);
  return text;
}

}  // namespace

Sample part_of_job(const Sample& all, const std::string& job) {
  Sample part{.time_ms = all.time_ms, .tasks = {}};
  for (const TaskSample& task : all.tasks)
    if (task.job == job || (task.is_node() && !task.has_ended)) part.tasks.push_back(task);
  return part;
}

Outcome<std::string> find_job(const Sample& all, const std::string& word) {
  auto jobs = jobs_in(all);
  std::map<std::string, Job> meant;
  for (const TaskSample& task : all.tasks)
    if (jobs.contains(task.job) && (word.empty() ? !task.is_node() : is_meant(word, task)))
      meant[task.job] = jobs[task.job];
  if (meant.size() == 1) return meant.begin()->first;
  if (meant.size() > 1)
    return refuse("shima top", "several jobs run here:" + list_of(meant),
                  "\nname one: its whole name, or the process number in it");
  if (word.empty())
    return refuse("shima top", "no job of this user runs under Shima on this host",
                  "start one with `shima run`, or name --hosts and the job");
  return refuse(
      "shima top " + word,
      "there is no such job here" + (jobs.empty() ? std::string() : "; there are:" + list_of(jobs)),
      "name a job, or the process ID of one of its tasks");
}

Outcome<LiveSource> LiveSource::open(const TopOptions& options) {
  LiveSource source;
  source.boards_.find();
  const auto found = find_job(source.boards_.look(), options.job);
  const bool is_elsewhere = !options.job.empty() && (options.local || !options.hosts.empty());
  if (!found && !is_elsewhere) return std::unexpected(found.error());
  source.job_ = found ? *found : options.job;
  if (options.hosts.empty()) return source;
  auto remote = RemoteHosts::start(options.hosts, options.shell, source.job_, options.interval_s);
  if (!remote) return std::unexpected(remote.error());
  source.remote_ = *std::move(remote);
  constexpr int patience_ms = 10'000;
  source.remote_.wait_for_first(patience_ms);
  return source;
}

// A look at all processes of the machine costs much more than one at known boards.
Sample LiveSource::look() {
  constexpr std::size_t looks_per_search = 4;
  if (looks_++ % looks_per_search == 0) boards_.find();
  Sample sample = part_of_job(boards_.look(), job_);
  if (!remote_.empty()) remote_.add_to(sample);
  return sample;
}

bool is_over(const Sample& sample) {
  bool any = false;
  for (const TaskSample& task : sample.tasks) {
    if (task.is_node()) continue;
    if (!task.has_ended) return false;
    any = true;
  }
  return any;
}

}  // namespace shima::tool
