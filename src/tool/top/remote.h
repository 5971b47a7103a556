// Tasks on other hosts: `shima top --record -` runs there, started by ssh, and its samples come
// back through the connection.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "tool/common/failure.h"
#include "tool/top/sample.h"

namespace shima::tool {

// A word of a shell's command that means itself, whatever is in it.
[[nodiscard]] std::string in_quotes(const std::string& word);

class RemoteHosts {
 public:
  // Who has named a host. The user hears of the end of a connection to a host that he has named.
  enum class NamedBy { user, job };

  // `shell`: the command that runs another on a host, as ssh does.
  RemoteHosts(std::string shell, std::string job, double interval_s)
      : shell_(std::move(shell)), job_(std::move(job)), interval_s_(interval_s) {}
  RemoteHosts() = default;
  RemoteHosts(RemoteHosts&&) = default;
  RemoteHosts& operator=(RemoteHosts&&) = default;
  ~RemoteHosts();

  [[nodiscard]] Outcome<void> add(const std::string& name, NamedBy named_by);
  // Adds the last sample of each host.
  void add_to(Sample& sample);
  // Waits until every host has sent one, or has failed, or the time is up.
  void wait_for_first();
  // Why the last samples have no task of a host; nothing if they have.
  [[nodiscard]] std::optional<AbsentHost::Why> absence_of(const std::string& name) const;
  // The hosts named by the user whose connection has ended.
  [[nodiscard]] std::vector<std::string> lost() const;
  [[nodiscard]] std::size_t size() const { return hosts_.size(); }
  [[nodiscard]] bool has(const std::string& name) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Host {
    std::string name;
    NamedBy named_by = NamedBy::user;
    UniqueFd from;
    pid_t child = 0;
    Clock::time_point since;
    std::string unread;
    std::optional<Sample> last;
    bool has_ended = false;
  };
  void receive(Host& host);

  std::string shell_;
  std::string job_;
  double interval_s_ = 1;
  std::vector<Host> hosts_;
};

}  // namespace shima::tool
