// The initial stack of a program: argc, argv, the environment, the auxiliary vector, and the
// strings they point to, laid out as the kernel does (System V ABI).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace shima::pvas {

struct AuxEntry {
  std::uint64_t type;
  std::uint64_t value;
};

struct FirstStack {
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
  std::string shown_name;     // AT_EXECFN
  std::string platform;       // AT_PLATFORM; "": none
  std::vector<AuxEntry> aux;  // without AT_EXECFN, AT_PLATFORM, AT_RANDOM and AT_NULL
  std::array<std::uint8_t, 16> random{};
};

// The root's own auxiliary vector, without the entries that differ in a task.
[[nodiscard]] Result<std::vector<AuxEntry>> inherited_aux();

// Writes it so that it ends at the end of `stack`, which will be at `address`; returns the address
// of argc (bad_count if there is not enough room).
[[nodiscard]] Result<std::uint64_t> write_first_stack(const FirstStack& content,
                                                      std::span<std::byte> stack,
                                                      std::uint64_t address);

}  // namespace shima::pvas
