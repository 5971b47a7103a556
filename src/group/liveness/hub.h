// Hub of the liveness service: rank 0 tells all nodes when one of them has lost a member.
//
// Each node has one connection (group/liveness/lookout.h). The hub passes the first loss on to all
// nodes. A connection that ends without a goodbye is the loss of that node's leader: its process or
// its machine, or the cable between. The hub stays until all nodes have left, also when its own
// process has no more use for it: they may still wait for each other.
#pragma once

#include <atomic>
#include <memory>
#include <span>

#include "group/liveness/notice.h"
#include "net/server.h"

namespace shima {

class Hub {
 public:
  // A node whose machine does not answer for `timeout` is lost.
  [[nodiscard]] static Result<std::shared_ptr<Hub>> start(
      std::span<const SocketAddress> addresses, std::chrono::seconds timeout,
      const ServerLimits& limits = {.most_clients = SIZE_MAX / 2, .idle_timeout = {}});
  ~Hub() { end(); }
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;

  [[nodiscard]] const ServiceAddress& address() const { return server_->address(); }
  // The process of rank 0 takes no further part.
  void leave();
  // Leaves and ends the thread.
  void end();
  // Whether all nodes have left.
  [[nodiscard]] bool is_over() const { return over_; }

 private:
  explicit Hub(std::chrono::seconds timeout) : timeout_(timeout) {}
  [[nodiscard]] Server::Handlers handlers();
  [[nodiscard]] bool serve(Server& server, Server::Visitor& visitor);
  [[nodiscard]] bool join(Server::Visitor& visitor, std::uint32_t rank);
  void pass_on(Server& server, std::uint32_t rank);

  std::chrono::seconds timeout_;
  std::atomic<bool> left_{false};
  std::atomic<bool> over_{false};
  bool has_said_goodbye_ = false;
  std::uint32_t lost_ = 0;  // rank + 1
  std::unique_ptr<Server> server_;
};

}  // namespace shima
