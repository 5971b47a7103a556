#include "fuse/calls/mount.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <vector>

namespace shima::fuse {
namespace {

constexpr unsigned most_threads = 16;
constexpr unsigned idle_threads = 4;

// Attributes and names are not cached (timeout 0), writes arrive at once, and pages are dropped
// when attributes show a change; see Watcher for changes that attributes do not show.
void negotiate(void*, fuse_conn_info* connection) {
  connection->want |= FUSE_CAP_AUTO_INVAL_DATA & connection->capable;
  connection->want &= ~static_cast<unsigned>(FUSE_CAP_WRITEBACK_CACHE | FUSE_CAP_READDIRPLUS |
                                             FUSE_CAP_HANDLE_KILLPRIV | FUSE_CAP_ATOMIC_O_TRUNC |
                                             FUSE_CAP_SPLICE_READ);
  connection->max_background = 64;
}

// Files in use and the directories above them stay open.
void allow_many_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

bool is_inside(const std::filesystem::path& path, const std::filesystem::path& directory) {
  const auto relative = path.lexically_relative(directory);
  return !relative.empty() && *relative.begin() != "..";
}

// The serving process must never need the mount itself.
Status check_places(const MountOptions& options) {
  std::error_code error;
  const auto directory = std::filesystem::canonical(options.directory, error);
  if (error) return fail_errno(error.value(), "opening " + options.directory);
  const auto mount_point = std::filesystem::canonical(options.mount_point, error);
  if (error) return fail_errno(error.value(), "opening " + options.mount_point);
  if (!is_inside(directory, mount_point) && !is_inside(mount_point, directory)) return {};
  return fail(Code::bad_argument,
              fmt::format("one of {} and {} is inside the other; choose separate directories",
                          directory.string(), mount_point.string()));
}

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == ',' || c == '\\') safe += '\\';
    safe += c;
  }
  return safe;
}

struct DestroySession {
  void operator()(fuse_session* session) const { fuse_session_destroy(session); }
};
using Session = std::unique_ptr<fuse_session, DestroySession>;

Session make_session(Mount& mount) {
  std::vector<std::string> words{"shima", "-o", mount_words(mount.options)};
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  fuse_args arguments{static_cast<int>(pointers.size()), pointers.data(), 0};
  fuse_lowlevel_ops calls{};
  calls.init = negotiate;
  add_attribute_calls(calls);
  add_name_calls(calls);
  add_data_calls(calls);
  add_directory_calls(calls);
  add_xattr_calls(calls);
  Session session(fuse_session_new(&arguments, &calls, sizeof calls, &mount));
  fuse_opt_free_args(&arguments);
  return session;
}

Status serve_mounted(Mount& mount, fuse_session* session) {
  const Status watching = mount.tree.watcher().start(
      [session](NodeNumber number) { fuse_lowlevel_notify_inval_inode(session, number, 0, 0); });
  if (!watching)
    log(LogLevel::warn, "{}: files are read without the page cache", describe(watching.error()));
  ::umask(0);  // the kernel has applied the caller's umask
  return serve(
      [session](fuse_loop_config* config) { return fuse_session_loop_mt(session, config); });
}

}  // namespace

std::string mount_words(const MountOptions& options) {
  const std::string words =
      fmt::format("fsname={},subtype=shima,default_permissions", escaped(options.directory));
  return options.others ? words + ",allow_other" : words;
}

// The parent exits once the mount is ready; the child logs to the file.
Status go_to_background(const MountOptions& options) {
  if (options.foreground) return {};
  UniqueFd log;
  if (!options.log_file.empty()) {
    log =
        UniqueFd(::open(options.log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (!log) return fail_errno(errno, "opening " + options.log_file);
  }
  if (fuse_daemonize(0) != 0) return fail(Code::internal, "cannot run in the background");
  if (log) ::dup2(log.get(), STDERR_FILENO);
  return {};
}

Status serve(const std::function<int(fuse_loop_config*)>& loop) {
  fuse_loop_config* const config = fuse_loop_cfg_create();
  fuse_loop_cfg_set_clone_fd(config, 1);
  fuse_loop_cfg_set_max_threads(config, most_threads);
  fuse_loop_cfg_set_idle_threads(config, idle_threads);
  const int code = loop(config);
  fuse_loop_cfg_destroy(config);
  // Termination by a signal is a normal end.
  return code < 0 ? fail_errno(-code, "serving the mount") : Status{};
}

Status run_mount(const MountOptions& options) {
  SHIMA_TRY(check_places(options));
  allow_many_files();
  UniqueFd root(::open(options.directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root) return fail_errno(errno, "opening " + options.directory);
  Mount mount(std::move(root), options);
  const Session session = make_session(mount);
  if (!session) return fail(Code::internal, "libfuse rejects the options of the mount");
  if (fuse_set_signal_handlers(session.get()) != 0)
    return fail(Code::internal, "cannot handle signals");
  if (fuse_session_mount(session.get(), options.mount_point.c_str()) != 0)
    return fail(Code::io, "cannot mount at " + options.mount_point);
  Status served = go_to_background(options);
  if (served) served = serve_mounted(mount, session.get());
  fuse_session_unmount(session.get());
  fuse_remove_signal_handlers(session.get());
  return served;
}

}  // namespace shima::fuse
