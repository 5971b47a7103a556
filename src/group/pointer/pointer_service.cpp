#include "group/pointer/pointer_service.h"

#include <cstring>

#include "base/fault_point.h"

namespace shima {

Result<std::shared_ptr<PointerService>> PointerService::start(
    std::span<const SocketAddress> addresses, const ServerLimits& limits) {
  std::shared_ptr<PointerService> service(new PointerService);
  const auto serve = [own = service.get()](Server&, const Server::Visitor& visitor) {
    return own->answer(visitor);
  };
  SHIMA_TRY_ASSIGN(
      service->server_,
      Server::start(addresses, limits, {.message_bytes = sizeof(PointerRequest), .serve = serve}));
  return service;
}

std::int64_t PointerService::serve(const PointerRequest& request) {
  const std::lock_guard hold(lock_);
  LastAnswer* const last = request.client == 0 ? nullptr : &answered_[request.client];
  if (last != nullptr && last->serial == request.serial) return last->answer;
  std::int64_t& word = words_[request.file][request.turn % 2];
  const std::int64_t before = word;
  word = request.operation == PointerRequest::set ? request.value : before + request.value;
  if (last != nullptr) *last = {request.serial, before};
  return before;
}

void PointerService::forget(std::uint64_t file) {
  const std::lock_guard hold(lock_);
  words_.erase(file);
}

bool PointerService::answer(const Server::Visitor& visitor) {
  static_assert(sizeof(PointerRequest) <= Server::most_message_bytes);
  PointerRequest request;
  std::memcpy(&request, visitor.message.data(), sizeof request);
  const std::int64_t before = serve(request);
  fault_point(FaultPhase::pointer_serve);
  return send_all(visitor.socket.get(), &before, sizeof before);
}

}  // namespace shima
