// The message of a thread's last error, as a C interface keeps it.
#pragma once

#include <array>
#include <cstring>

#include "base/result.h"

namespace shima::capi {

// Trivial construction and destruction: readable at any time of a thread's life.
using LastMessage = std::array<char, 1024>;

// Keeps what an error says, or its name if there is no memory for more.
inline void remember(LastMessage& message, const Error& error) {
  const auto keep = [&](const char* text) {
    std::strncpy(message.data(), text, message.size() - 1);
  };
  const auto said = caught([&]() -> Status {
    keep(describe(error).c_str());
    return {};
  });
  if (!said) keep(name_of(error.code));
}

}  // namespace shima::capi
