// Server of the shared file pointers, for members that share no memory.
//
// One member stores the words of all files of a communicator. Its service thread answers the others
// over TCP (group/pointer/pointer_protocol.h), so that no member waits for one that computes; the
// thread sleeps while there are no requests. Descriptors are a resource of the program, so
// connections are few: those that have not sent the secret are closed after a time or when there
// are too many, and so are clients that have been idle for long. A closed client connects again.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "group/pointer/pointer_protocol.h"

namespace shima {

struct PointerLimits {
  std::size_t most_strangers = 64;  // connections that have not sent the secret
  std::size_t most_clients = 128;
  std::chrono::milliseconds handshake_timeout{5000};
  std::chrono::milliseconds idle_timeout{60'000};
};

// Thread-safe.
class PointerService {
 public:
  // Listens at a free port of each given address.
  [[nodiscard]] static Result<std::shared_ptr<PointerService>> start(
      std::span<const SocketAddress> addresses, const PointerLimits& limits = {});
  PointerService(const PointerService&) = delete;
  PointerService& operator=(const PointerService&) = delete;
  ~PointerService();

  [[nodiscard]] const PointerAddress& address() const { return address_; }
  // Executes a request and returns the previous value of the word. Words start at 0.
  std::int64_t serve(const PointerRequest& request);
  void forget(std::uint64_t file);

 private:
  struct Visitor;
  struct LastAnswer {
    std::uint64_t serial = 0;
    std::int64_t answer = 0;
  };

  explicit PointerService(const PointerLimits& limits) : limits_(limits) {}
  [[nodiscard]] Status listen(std::span<const SocketAddress> addresses);
  void run();
  [[nodiscard]] Result<bool> serve_round(std::vector<Visitor>& visitors);
  void admit(int listener, std::vector<Visitor>& visitors) const;
  void keep_within_limits(std::vector<Visitor>& visitors) const;
  [[nodiscard]] bool attend(Visitor& visitor);

  PointerLimits limits_;
  PointerAddress address_;
  std::vector<UniqueFd> listeners_;
  UniqueFd stop_;
  std::mutex lock_;
  std::map<std::uint64_t, std::array<std::int64_t, 2>> words_;
  std::map<std::uint64_t, LastAnswer> answered_;  // by client
  std::thread thread_;
};

}  // namespace shima
