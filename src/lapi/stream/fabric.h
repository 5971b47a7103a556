// What carries the bytes between tasks on different nodes in place of TCP connections: UCX.
//
// The connection of a pair stays: it authenticates the tasks, they exchange their addresses in UCX
// over it, and its end is the end of a task.
#pragma once

#include <memory>

#include "base/unique_fd.h"
#include "lapi/stream/stream.h"

namespace shima::lapi {

class Fabric {
 public:
  Fabric() = default;
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;
  virtual ~Fabric() = default;

  // A stream to `task`, which has agreed, with a connection that `epoll` watches.
  [[nodiscard]] virtual std::unique_ptr<Stream> carry(UniqueFd socket, int epoll, int task) = 0;
  // Sends and receives; streams show what has arrived. Any thread.
  virtual void progress() = 0;
  // Before a thread sleeps at descriptor(): false if something has arrived meanwhile.
  [[nodiscard]] virtual bool arm() = 0;
  [[nodiscard]] virtual int descriptor() const = 0;
  // Whether progress() without anything to do needs no system call.
  [[nodiscard]] virtual bool is_polled_cheaply() const = 0;
};

}  // namespace shima::lapi
