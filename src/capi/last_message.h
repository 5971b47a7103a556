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

// The same without the name of the error's code, which is one of files.
inline void remember_text(LastMessage& message, const Error& error) {
  if (error.sys_errno == 0 && !error.what.empty())
    std::strncpy(message.data(), error.what.c_str(), message.size() - 1);
  else
    remember(message, error);
}

}  // namespace shima::capi
