#include "tool/top/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/process/host_list.h"

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

std::vector<std::string> other_hosts(const Sample& here) {
  constexpr std::size_t most_hosts = 1024;
  std::set<std::string> lists;
  for (const TaskSample& task : here.tasks)
    if (!task.is_node() && !task.hosts.empty()) lists.insert(task.hosts);
  std::vector<std::string> names;
  for (const std::string& list : lists)
    for (std::string& name : expand_hosts(list, most_hosts)) {
      const bool is_known = std::ranges::find(names, name) != names.end();
      const bool is_here = std::ranges::any_of(
          here.tasks, [&](const TaskSample& task) { return are_same_host(task.host, name); });
      if (!is_known && !is_here) names.push_back(std::move(name));
    }
  return names;
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
  source.remote_ = RemoteHosts(options.shell, source.job_, options.interval_s);
  source.asks_by_itself_ = options.hosts.empty() && !options.local && !options.here;
  for (const std::string& host : options.hosts)
    if (const auto added = source.remote_.add(host, RemoteHosts::NamedBy::user); !added)
      return std::unexpected(added.error());
  if (source.asks_by_itself_) source.ask_hosts_of_job(source.look_here());
  source.remote_.wait_for_first();
  return source;
}

Sample LiveSource::look_here() { return part_of_job(boards_.look(), job_); }

// A host named by another user's process is not asked: ssh would take root there.
void LiveSource::ask_hosts_of_job(const Sample& here) {
  constexpr std::size_t most_asked = 64;
  if (!lacks_tasks(here)) return;
  Sample own = here;
  std::erase_if(own.tasks, [](const TaskSample& task) { return !task.is_own; });
  for (const std::string& name : other_hosts(own)) {
    if (remote_.has(name)) continue;
    if (remote_.size() == most_asked) return;
    // It fails only for lack of memory or processes; then the host is shown as not asked.
    if (!remote_.add(name, RemoteHosts::NamedBy::job)) return;
  }
}

// A look at all processes of the machine costs much more than one at known boards.
Sample LiveSource::look() {
  constexpr std::size_t looks_per_search = 4;
  if (looks_++ % looks_per_search == 0) boards_.find();
  Sample sample = look_here();
  const std::vector<std::string> others = other_hosts(sample);
  if (asks_by_itself_) ask_hosts_of_job(sample);
  remote_.add_to(sample);
  if (!lacks_tasks(sample)) return sample;
  for (const std::string& name : others) {
    const bool is_shown = std::ranges::any_of(sample.tasks, [&](const TaskSample& task) {
      return !task.is_node() && are_same_host(task.host, name);
    });
    const auto why = remote_.absence_of(name);
    if (!is_shown && why) sample.absent.push_back({name, *why});
  }
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
