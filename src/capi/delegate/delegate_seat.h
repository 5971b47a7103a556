// The object behind a delegate_seat of delegate.h.
#pragma once

#include "delegate/in_space.h"
#include "shima/delegate.h"

struct delegate_seat {
  std::unique_ptr<shima::delegate::NamedSeat> named;
};

namespace shima::capi {

[[nodiscard]] inline Result<delegate::Requester*> requester_of(delegate_seat* seat) {
  if (seat == nullptr) return fail(Code::bad_argument, "the seat is NULL");
  return &seat->named->requester();
}

[[nodiscard]] inline Status judge_payload(const void* data, std::size_t size) {
  if (data != nullptr || size == 0) return {};
  return fail(Code::bad_argument, "the payload is NULL and not empty");
}

}  // namespace shima::capi
