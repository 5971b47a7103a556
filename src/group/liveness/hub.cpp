#include "group/liveness/hub.h"

#include <cstring>
#include <tuple>

namespace shima {
namespace {

// Marks of a node's connection, besides its leader's rank + 1.
constexpr std::uint32_t not_joined = 0;
constexpr std::uint32_t has_left = UINT32_MAX;

}  // namespace

Result<std::shared_ptr<Hub>> Hub::start(std::span<const SocketAddress> addresses,
                                        std::chrono::seconds timeout, const ServerLimits& limits) {
  std::shared_ptr<Hub> hub(new Hub(timeout));
  SHIMA_TRY_ASSIGN(hub->server_, Server::start(addresses, limits, hub->handlers()));
  return hub;
}

Server::Handlers Hub::handlers() {
  Server::Handlers made;
  made.message_bytes = sizeof(Notice);
  made.serve = [this](Server& server, Server::Visitor& node) { return serve(server, node); };
  made.welcome = [this](Server&, Server::Visitor& node) {
    close_if_unreachable(node.socket.get(), timeout_);
    return true;
  };
  made.bid_farewell = [this](Server& server, Server::Visitor& node) {
    if (node.mark != not_joined && node.mark != has_left) pass_on(server, node.mark - 1);
  };
  made.woken = [this](Server& server) {
    if (!left_ || std::exchange(has_said_goodbye_, true)) return;
    server.for_each_client([](Server::Visitor& node) {
      std::ignore = send_notice(node.socket.get(), {.kind = Notice::goodbye});
    });
  };
  made.over = [this](Server& server) {
    bool any = false;
    server.for_each_client([&any](Server::Visitor&) { any = true; });
    over_ = left_ && !any;
    return over_.load();
  };
  return made;
}

void Hub::leave() {
  if (!server_) return;
  left_ = true;
  server_->wake();
}

void Hub::end() {
  leave();
  server_.reset();
}

bool Hub::join(Server::Visitor& visitor, std::uint32_t rank) {
  visitor.mark = rank + 1;
  const int node = visitor.socket.get();
  if (lost_ != 0 && !send_notice(node, {.kind = Notice::lost, .rank = lost_ - 1})) return false;
  return !has_said_goodbye_ || send_notice(node, {.kind = Notice::goodbye});
}

bool Hub::serve(Server& server, Server::Visitor& visitor) {
  Notice notice;
  std::memcpy(&notice, visitor.message.data(), sizeof notice);
  switch (notice.kind) {
    case Notice::join:
      return join(visitor, notice.rank);
    case Notice::lost:
      pass_on(server, notice.rank);
      return true;
    case Notice::goodbye:
      visitor.mark = has_left;
      return true;
  }
  return false;
}

// Only the first loss counts: it ends all that the members do together.
void Hub::pass_on(Server& server, std::uint32_t rank) {
  if (lost_ != 0) return;
  lost_ = rank + 1;
  server.for_each_client([rank](Server::Visitor& node) {
    std::ignore = send_notice(node.socket.get(), {.kind = Notice::lost, .rank = rank});
  });
}

}  // namespace shima
