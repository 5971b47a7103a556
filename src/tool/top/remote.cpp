#include "tool/top/remote.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <sstream>

#include "tool/common/process.h"
#include "tool/top/recording.h"
#include "tool/top/sample_json.h"

namespace shima::tool {
namespace {

using std::chrono::seconds;

// So long a host may take for its first sample.
constexpr seconds patience(10);

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream from(text);
  std::vector<std::string> words;
  for (std::string word; from >> word;) words.push_back(word);
  return words;
}

[[noreturn]] void be_remote(const Command& command, int to) {
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(nothing, STDERR_FILENO);
  ::dup2(to, STDOUT_FILENO);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  std::ignore = become(command);
  ::_exit(exit_refused);
}

}  // namespace

std::string in_quotes(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

Outcome<void> RemoteHosts::add(const std::string& name, NamedBy named_by) {
  if (name.empty() || name.front() == '-')
    return refuse("--hosts " + name, "not the name of a host", "write --hosts A,B");
  Command command = words_of(shell_);
  command.push_back(name);
  command.push_back(fmt::format("exec {} top {} --record - --local --interval {}",
                                in_quotes(own_path().string()), in_quotes(job_), interval_s_));
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    return refuse("--hosts " + name, "cannot make a pipe", "check the limits");
  UniqueFd from(ends[0]);
  const UniqueFd to(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) be_remote(command, to.get());
  if (child < 0) return refuse("--hosts " + name, "cannot fork", "check the limits");
  ::fcntl(from.get(), F_SETFL, O_NONBLOCK);
  hosts_.push_back({name, named_by, std::move(from), child, Clock::now(), {}, {}, false});
  return {};
}

bool RemoteHosts::has(const std::string& name) const {
  return std::ranges::find(hosts_, name, &Host::name) != hosts_.end();
}

RemoteHosts::~RemoteHosts() {
  for (Host& host : hosts_) {
    if (host.child <= 0) continue;
    host.from = {};
    ::kill(host.child, SIGTERM);
    while (::waitpid(host.child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

void RemoteHosts::receive(Host& host) {
  std::array<char, 65536> read{};
  while (!host.has_ended) {
    const ssize_t len = ::read(host.from.get(), read.data(), read.size());
    if (len < 0 && errno == EINTR) continue;
    if (len < 0 && errno == EAGAIN) break;
    if (len <= 0)
      host.has_ended = true;
    else
      host.unread.append(read.data(), static_cast<std::size_t>(len));
  }
  for (std::size_t end = 0; (end = host.unread.find('\n')) != std::string::npos;) {
    if (auto sample = sample_from_json(host.unread.substr(0, end))) host.last = std::move(sample);
    host.unread.erase(0, end + 1);
  }
}

void RemoteHosts::add_to(Sample& sample) {
  for (Host& host : hosts_) {
    receive(host);
    if (!host.last) continue;
    for (const TaskSample& task : host.last->tasks)
      if (std::ranges::none_of(sample.tasks, [&](const TaskSample& known) {
            return known.host == task.host && known.pid == task.pid;
          }))
        sample.tasks.push_back(task);
  }
}

void RemoteHosts::wait_for_first() {
  const auto until = Clock::now() + patience;
  while (Clock::now() < until) {
    std::vector<pollfd> watched;
    for (Host& host : hosts_) {
      receive(host);
      if (!host.last && !host.has_ended) watched.push_back({host.from.get(), POLLIN, 0});
    }
    if (watched.empty()) return;
    constexpr int slice_ms = 200;
    ::poll(watched.data(), watched.size(), slice_ms);
  }
}

std::optional<AbsentHost::Why> RemoteHosts::absence_of(const std::string& name) const {
  const auto host = std::ranges::find(hosts_, name, &Host::name);
  if (host == hosts_.end()) return AbsentHost::Why::not_asked;
  if (host->last && std::ranges::any_of(host->last->tasks,
                                        [](const TaskSample& task) { return !task.is_node(); }))
    return {};
  if (host->has_ended) return AbsentHost::Why::silent;
  if (host->last) return AbsentHost::Why::no_task;
  return Clock::now() - host->since < patience ? AbsentHost::Why::asked : AbsentHost::Why::silent;
}

std::vector<std::string> RemoteHosts::lost() const {
  std::vector<std::string> names;
  for (const Host& host : hosts_)
    if (host.has_ended && host.named_by == NamedBy::user) names.push_back(host.name);
  return names;
}

}  // namespace shima::tool
