// Tasks on other hosts: `shima top --record -` runs there, started by ssh, and its samples come
// back through the connection.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "tool/common/failure.h"
#include "tool/top/sample.h"

namespace shima::tool {

class RemoteHosts {
 public:
  // `shell`: the command that runs another on a host, as ssh does.
  [[nodiscard]] static Outcome<RemoteHosts> start(const std::vector<std::string>& hosts,
                                                  const std::string& shell, const std::string& job,
                                                  double interval_s);
  RemoteHosts() = default;
  RemoteHosts(RemoteHosts&&) = default;
  RemoteHosts& operator=(RemoteHosts&&) = default;
  ~RemoteHosts();

  // Adds the last sample of each host.
  void add_to(Sample& sample);
  // Waits until every host has sent one, or has failed, or the time is up.
  void wait_for_first(int limit_ms);
  // The hosts whose connection has ended.
  [[nodiscard]] std::vector<std::string> lost() const;
  [[nodiscard]] bool empty() const { return hosts_.empty(); }

 private:
  struct Host {
    std::string name;
    UniqueFd from;
    pid_t child = 0;
    std::string unread;
    std::optional<Sample> last;
    bool has_ended = false;
  };
  void receive(Host& host);

  std::vector<Host> hosts_;
};

}  // namespace shima::tool
