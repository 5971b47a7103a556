#include "lapi/way/early_connection.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>

#include "base/file_text.h"
#include "base/process/launcher.h"
#include "lapi/way/job_memory.h"
#include "lapi/way/meeting.h"
#include "net/own_socket.h"

namespace shima::lapi {
namespace {

struct Early {
  std::mutex mutex;
  UniqueFd socket;
  pid_t process = 0;
};

// Never destroyed: threads of the program may call in until the process ends.
Early& early() {
  static auto* const made = new Early;
  return *made;
}

// Of another process; empty if it belongs to another user, as a launcher's daemon may.
Environment environment_of(pid_t process) {
  std::string all = file_text(fmt::format("/proc/{}/environ", process)).value_or(std::string());
  return [all = std::move(all)](const char* name) -> std::optional<std::string> {
    const std::string begin = fmt::format("{}=", name);
    for (std::string_view rest = all; !rest.empty();) {
      const std::string_view line = rest.substr(0, rest.find('\0'));
      if (line.starts_with(begin)) return std::string(line.substr(begin.size()));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    }
    return std::nullopt;
  };
}

bool is_started_by_launcher(const LauncherNumber& own) {
  const LauncherNumber parent = launcher_number(environment_of(::getppid()));
  return parent.rank != own.rank || parent.size != own.size;
}

}  // namespace

// A program that this process executes keeps the connection, so it is not closed then.
void connect_early() {
  constexpr auto timeout = std::chrono::seconds(3);
  const auto place = parse_meeting(std::getenv(job_variable));
  const LauncherNumber number = launcher_number();
  if (!place || number.size <= 1 || number.size > most_tasks || number.rank < 0 ||
      number.rank >= number.size || !is_started_by_launcher(number))
    return;
  auto reached = connect_to(*place, timeout);
  const MeetingNotice notice{
      .kind = MeetingNotice::Kind::started, .task = number.rank, .tasks = number.size};
  if (!reached || !send_notice(reached->get(), notice)) return;
  ::fcntl(reached->get(), F_SETFD, 0);
  keep_from_children(reached->get());
  const std::lock_guard hold(early().mutex);
  early().socket = *std::move(reached);
  early().process = ::getpid();
}

UniqueFd take_early_connection() {
  const std::lock_guard hold(early().mutex);
  if (!early().socket || early().process != ::getpid()) return {};
  keep_no_longer(early().socket.get());
  ::fcntl(early().socket.get(), F_SETFD, FD_CLOEXEC);
  return std::move(early().socket);
}

void leave_early() {
  const UniqueFd socket = take_early_connection();
  if (socket) std::ignore = send_notice(socket.get(), {.kind = MeetingNotice::Kind::goodbye});
}

}  // namespace shima::lapi
