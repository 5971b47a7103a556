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

// Adds the places of `texts`, the values of an option.
Outcome<void> add_places(std::string_view option, const std::vector<std::string>& texts,
                         std::vector<TargetPlace>& places) {
  for (const std::string& text : texts) {
    const std::string given = fmt::format("{} {}", option, text);
    const std::size_t equals = text.find('=');
    std::error_code error;
    const auto directory =
        std::filesystem::absolute(text.substr(equals == std::string::npos ? 0 : equals + 1), error);
    if (equals == std::string::npos || equals == 0 || error || text.find(':') != std::string::npos)
      return refuse(given, "not a name and its directory",
                    "write NAME=DIRECTORY, with a directory of this machine");
    auto checked = parse_target_list(text.substr(0, equals + 1) + directory.string());
    if (!checked) return std::unexpected(failure_of(given, checked.error()));
    for (const TargetPlace& other : places)
      if (other.name == checked->front().name)
        return refuse(given, "the second target or directory of this name", "choose another name");
    places.push_back(checked->front());
  }
  return {};
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
  if (options.listen.empty() || (options.targets.empty() && options.directories.empty()) ||
      (options.key_file.empty() && options.keys_file.empty()))
    return refuse("iod", "nothing to serve",
                  "give --listen, --target or --directory, and --key or --keys; or --status to ask "
                  "a running one");
  auto node = node_of(options.listen);
  if (!node) return std::unexpected(node.error());
  std::vector<TargetPlace> places;
  if (auto added = add_places("--target", options.targets, places); !added)
    return std::unexpected(added.error());
  const auto target_count = std::ssize(places);
  if (auto added = add_places("--directory", options.directories, places); !added)
    return std::unexpected(added.error());
  raise_descriptor_limit();
  ::umask(0);  // clients apply their own
  const sigset_t signals = block_signals();
  auto daemon = iod::Daemon::start({.listen = *node,
                                    .targets = {places.begin(), places.begin() + target_count},
                                    .directories = {places.begin() + target_count, places.end()},
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
