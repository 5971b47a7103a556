// A way over sockets of which every task serves its own memory.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "dsm/socket/serve.h"
#include "net/wire.h"

namespace shima::dsm {

struct SocketOptions {
  int task = 0;
  bool spins = false;                  // threads that wait for a message spin first
  std::function<bool(int)> is_lost{};  // whether a task is known to have ended
};

class SocketWay : public Way {
 public:
  // Where the other tasks connect, and the secrets that both sides show.
  [[nodiscard]] const ServiceAddress& address() const { return address_; }
  // Connects to all other tasks, whose addresses are in order.
  [[nodiscard]] virtual Status connect(std::span<const ServiceAddress> all) = 0;

 protected:
  ServiceAddress address_;
};

// Serve `own` at free ports of the addresses.
[[nodiscard]] Result<std::unique_ptr<SocketWay>> serve_by_tcp(
    const SegmentView& own, int tasks, SocketOptions options,
    std::span<const SocketAddress> addresses);
[[nodiscard]] Result<std::unique_ptr<SocketWay>> serve_by_udp(
    const SegmentView& own, int tasks, SocketOptions options,
    std::span<const SocketAddress> addresses);

}  // namespace shima::dsm
