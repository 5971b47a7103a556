#include "tool/iod/iod_command.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cstdio>
#include <filesystem>

#include "base/log.h"
#include "iod/daemon.h"
#include "store/remote/remote_files.h"
#include "tool/common/print_failure.h"

namespace shima::tool {
namespace {

Outcome<remote::Node> node_of(const std::string& text) {
  const auto node = remote::parse_node(text);
  if (node) return *node;
  return refuse(text, "not an address", "write HOST:PORT, [ADDRESS]:PORT or :PORT");
}

Outcome<std::vector<TargetPlace>> places_of(const std::vector<std::string>& targets) {
  std::vector<TargetPlace> places;
  for (const std::string& text : targets) {
    const std::size_t equals = text.find('=');
    std::error_code error;
    const auto directory =
        std::filesystem::absolute(text.substr(equals == std::string::npos ? 0 : equals + 1), error);
    if (equals == std::string::npos || equals == 0 || error || text.find(':') != std::string::npos)
      return refuse("--target " + text, "not a target and its directory",
                    "write NAME=DIRECTORY, with a directory of this machine");
    auto checked = parse_target_list(text.substr(0, equals + 1) + directory.string());
    if (!checked) return std::unexpected(failure_of("--target " + text, checked.error()));
    for (const TargetPlace& other : places)
      if (other.name == checked->front().name)
        return refuse("--target " + text, "the second target of this name", "choose another name");
    places.push_back(checked->front());
  }
  return places;
}

Outcome<int> print_status(const IodOptions& options) {
  if (options.key_file.empty())
    return refuse("--status", "no key", "name the file with your key by --key");
  const auto node = node_of(options.status_of);
  if (!node) return std::unexpected(node.error());
  const auto text = remote::ask_status(*node, options.key_file);
  if (!text) return std::unexpected(failure_of("iod", text.error()));
  std::fputs(text->c_str(), stdout);
  return 0;
}

// As many as the system permits: each open subfile of a client is two here.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

// Those that sigwait() takes; threads that start later inherit this.
sigset_t block_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&signals, signal);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

std::string absolute(const std::string& path) {
  std::error_code error;
  const auto whole =
      path.empty() ? std::filesystem::path() : std::filesystem::absolute(path, error);
  return error ? path : whole.string();
}

}  // namespace

Outcome<int> run_iod(const IodOptions& options) {
  if (!options.status_of.empty()) return print_status(options);
  if (options.listen.empty() || options.targets.empty() ||
      (options.key_file.empty() && options.keys_file.empty()))
    return refuse("iod", "nothing to serve",
                  "give --listen, --target, and --key or --keys; or --status to ask a running one");
  auto node = node_of(options.listen);
  if (!node) return std::unexpected(node.error());
  auto places = places_of(options.targets);
  if (!places) return std::unexpected(places.error());
  raise_descriptor_limit();
  ::umask(0);  // clients apply their own
  const sigset_t signals = block_signals();
  auto daemon = iod::Daemon::start({.listen = *node,
                                    .targets = *std::move(places),
                                    .key_file = absolute(options.key_file),
                                    .keys_file = absolute(options.keys_file)});
  if (!daemon) return std::unexpected(failure_of("iod", daemon.error()));
  fmt::print("shima iod: serving at {}\n", (*daemon)->address().name());
  std::fflush(stdout);
  for (int signal = SIGHUP; signal == SIGHUP;) {
    ::sigwait(&signals, &signal);
    if (signal != SIGHUP) continue;
    if (const Status read = (*daemon)->read_keys(); !read)
      log(LogLevel::error, "the keys stay as they were: {}", describe(read.error()));
  }
  return 0;
}

}  // namespace shima::tool
