// Server of the shared file pointers, for members that share no memory.
//
// One member stores the words of all files of a communicator. Its service thread answers the others
// over TCP (net/server.h), so that no member waits for one that computes. The server closes
// clients that have been idle for long; a closed client connects again.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "base/result.h"
#include "group/pointer/pointer_protocol.h"
#include "net/server.h"

namespace shima {

// Thread-safe.
class PointerService {
 public:
  // Listens at a free port of each given address.
  [[nodiscard]] static Result<std::shared_ptr<PointerService>> start(
      std::span<const SocketAddress> addresses, const ServerLimits& limits = {});

  [[nodiscard]] const ServiceAddress& address() const { return server_->address(); }
  // Executes a request and returns the previous value of the word. Words start at 0.
  std::int64_t serve(const PointerRequest& request);
  void forget(std::uint64_t file);

 private:
  struct LastAnswer {
    std::uint64_t serial = 0;
    std::int64_t answer = 0;
  };

  PointerService() = default;
  [[nodiscard]] bool answer(const Server::Visitor& visitor);

  std::mutex lock_;
  std::map<std::uint64_t, std::array<std::int64_t, 2>> words_;
  std::map<std::uint64_t, LastAnswer> answered_;  // by client
  std::unique_ptr<Server> server_;                // its thread uses all of the above
};

}  // namespace shima
