// Starts tasks in a space, from outside or from one of its tasks.
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

// A file of this process and its descriptor number in the task.
struct GivenFile {
  int here;
  int there;
};

struct SpawnRequest {
  SpawnOrder order;
  UniqueFd directory;  // the task's working directory
  std::vector<GivenFile> files;
  pid_t launcher = 0;  // see Message
  int expected = 0;
};

// What exec(2) would pass on to `program`: environment, directory, descriptors without
// close-on-exec, signals, limits, CPU affinity.
[[nodiscard]] Result<SpawnRequest> like_this_process(const Program& program);

// A change of state of a task's process.
enum class Turn { ended, stopped, continued };
struct TaskChange {
  Turn turn;
  int status;           // as of wait(2)
  std::string failure;  // why the program did not start
};

// A task, owned by the process that started it; destroying this kills the task.
class StartedTask {
 public:
  [[nodiscard]] static Result<StartedTask> start(UniqueFd socket, const SpawnRequest& request);

  [[nodiscard]] int id() const { return id_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] int socket() const { return socket_.get(); }  // readable after a change

  [[nodiscard]] Status signal(int number) const;
  // Waits for a change; nothing if there was none in time. peer_lost if the root has exited.
  [[nodiscard]] Result<std::optional<TaskChange>> next_change(
      std::optional<std::chrono::milliseconds> limit) const;

 private:
  StartedTask(UniqueFd socket, int id, pid_t pid)
      : socket_(std::move(socket)), id_(id), pid_(pid) {}

  UniqueFd socket_;
  int id_;
  pid_t pid_;
};

// Asks the root to run as long as the connection is open, and waits for its confirmation.
[[nodiscard]] Status keep_root(const UniqueFd& socket);

}  // namespace shima::pvas
