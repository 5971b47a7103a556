// Where the samples of a job come from while it runs.
#pragma once

#include <string>

#include "tool/top/boards.h"
#include "tool/top/remote.h"
#include "tool/top/top_command.h"

namespace shima::tool {

// The tasks of one job and the I/O nodes, out of all tasks. Pure.
[[nodiscard]] Sample part_of_job(const Sample& all, const std::string& job);

// The name of the job that a word means; of the only one, if the word is empty. An error lists the
// jobs that there are. Pure.
[[nodiscard]] Outcome<std::string> find_job(const Sample& all, const std::string& word);

// The hosts that the tasks of this machine name as those of their job, without their own. Pure.
[[nodiscard]] std::vector<std::string> other_hosts(const Sample& here);

class LiveSource {
 public:
  [[nodiscard]] static Outcome<LiveSource> open(const TopOptions& options);
  [[nodiscard]] Sample look();
  [[nodiscard]] const std::string& job() const { return job_; }
  [[nodiscard]] std::vector<std::string> lost_hosts() const { return remote_.lost(); }

 private:
  [[nodiscard]] Sample look_here();
  void ask_hosts_of_job(const Sample& here);

  Boards boards_;
  RemoteHosts remote_;
  std::string job_;
  bool asks_by_itself_ = false;
  std::size_t looks_ = 0;
};

// Whether the job has tasks and all of them have ended.
[[nodiscard]] bool is_over(const Sample& sample);

}  // namespace shima::tool
