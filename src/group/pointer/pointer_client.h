// Client side of the shared file pointers (group/pointer/pointer_service.h).
#pragma once

#include <mutex>

#include "base/result.h"
#include "base/unique_fd.h"
#include "group/pointer/pointer_protocol.h"
#include "net/wire.h"

namespace shima {

// Connects at the first request, and again if the server has closed an idle connection.
// Thread-safe.
class PointerClient {
 public:
  explicit PointerClient(const ServiceAddress& address);

  // Sends a request, which the server executes exactly once, and returns the answer. Blocks.
  [[nodiscard]] Result<std::int64_t> ask(PointerRequest request);

 private:
  [[nodiscard]] Status connect();

  ServiceAddress address_;
  std::mutex lock_;
  std::uint64_t client_;
  std::uint64_t serial_ = 0;
  bool was_reached_ = false;
  UniqueFd socket_;
};

}  // namespace shima
