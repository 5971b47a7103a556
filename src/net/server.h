// A server of messages of one length over TCP (net/wire.h), with a thread of its own.
//
// The thread sleeps while there are no messages. Descriptors are a resource of the program, so
// connections are few: those that have not sent the secret are closed after a time or when there
// are too many, and so are clients that have been idle for long, if the service sets a limit.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "net/wire.h"

namespace shima {

struct ServerLimits {
  std::size_t most_strangers = 32;  // connections that have not sent the secret
  std::size_t most_clients = 128;
  std::chrono::milliseconds handshake_timeout{5000};
  std::chrono::milliseconds idle_timeout{60'000};  // zero: clients may be silent for ever
};

class Server {
 public:
  static constexpr std::size_t most_message_bytes = 512;

  // A connection; a client only after it has sent the secret.
  struct Visitor {
    UniqueFd socket;
    Clock::time_point until;  // deadline: closed then
    bool trusted = false;
    std::uint32_t mark = 0;  // for the handlers
    std::size_t received = 0;
    std::array<std::byte, most_message_bytes> message{};
  };
  // The service. The server's thread alone calls these, one at a time. All but `serve` may be
  // empty.
  struct Handlers {
    std::size_t message_bytes = 0;
    // Serves a whole message; false closes the connection.
    std::function<bool(Server&, Visitor&)> serve{};
    // A stranger has become a client; false closes the connection.
    std::function<bool(Server&, Visitor&)> welcome{};
    // The connection of a client has ended, and is closed after this.
    std::function<void(Server&, Visitor&)> bid_farewell{};
    // After wake().
    std::function<void(Server&)> woken{};
    // Whether the thread ends; asked after each round.
    std::function<bool(Server&)> over{};
  };

  // Listens at a free port of each given address.
  [[nodiscard]] static Result<std::unique_ptr<Server>> start(
      std::span<const SocketAddress> addresses, const ServerLimits& limits, Handlers handlers);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  // Ends the thread and closes all connections. No handler runs after this.
  ~Server();

  [[nodiscard]] const ServiceAddress& address() const { return address_; }
  // Makes the thread call `woken`. Thread-safe.
  void wake();
  // For handlers: calls `visit` for each client.
  template <class Visit>
  void for_each_client(Visit visit) {
    for (Visitor& visitor : visitors_)
      if (visitor.trusted && visitor.socket) visit(visitor);
  }

 private:
  Server(const ServerLimits& limits, Handlers handlers)
      : limits_(limits), handlers_(std::move(handlers)) {}
  [[nodiscard]] Status listen(std::span<const SocketAddress> addresses);
  void run();
  [[nodiscard]] Result<bool> serve_round();
  void admit(int listener);
  void keep_within_limits();
  [[nodiscard]] bool attend(Visitor& visitor);
  [[nodiscard]] bool trust(Visitor& visitor);
  void answer_bell();
  [[nodiscard]] Clock::time_point idle_deadline() const;

  ServerLimits limits_;
  Handlers handlers_;
  ServiceAddress address_;
  std::vector<UniqueFd> listeners_;
  std::vector<Visitor> visitors_;
  bool has_refused_ = false;  // a stranger, and said so
  UniqueFd bell_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace shima
