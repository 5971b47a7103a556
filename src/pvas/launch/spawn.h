// Starting tasks in a space, from outside of it or from one of its tasks.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "pvas/launch/program.h"
#include "pvas/shared/wire.h"

namespace shima::pvas {

// A file of this process and its number in the task.
struct GivenFile {
  int here;
  int there;
};

struct SpawnRequest {
  SpawnOrder order;
  UniqueFd folder;  // the task's working directory
  std::vector<GivenFile> files;
  pid_t launcher = 0;  // see Message
  int expected = 0;
};

// Everything that exec(2) would hand on to `program`: environment, directory, files that are not
// closed on exec, signals, limits, cores.
[[nodiscard]] Result<SpawnRequest> like_this_process(const Program& program);

// What a task's process has gone through.
enum class Turn { ended, stopped, continued };
struct TaskChange {
  Turn turn;
  int status;           // as of wait(2)
  std::string failure;  // why the program did not begin
};

// A task, for who started it; it is killed with this.
class StartedTask {
 public:
  [[nodiscard]] static Result<StartedTask> start(UniqueFd socket, const SpawnRequest& request);

  [[nodiscard]] int id() const { return id_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] int socket() const { return socket_.get(); }  // readable when something changed

  [[nodiscard]] Status signal(int number) const;
  // Waits for a change; nothing where there was none in time. That the root is gone is peer_lost.
  [[nodiscard]] Result<std::optional<TaskChange>> next_change(
      std::optional<std::chrono::milliseconds> limit) const;

 private:
  StartedTask(UniqueFd socket, int id, pid_t pid)
      : socket_(std::move(socket)), id_(id), pid_(pid) {}

  UniqueFd socket_;
  int id_;
  pid_t pid_;
};

// Says on a connection that the root is to stay as long as it is open, and waits until it has begun
// to.
[[nodiscard]] Status keep_root(const UniqueFd& socket);

}  // namespace shima::pvas
