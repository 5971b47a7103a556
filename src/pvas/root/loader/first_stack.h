// What a program finds on its stack when it begins: argc, argv, the environment, the auxiliary
// vector, and the strings they point to. As kernels lay it out; the System V ABI says so.
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
  std::string platform;       // AT_PLATFORM; "" for none
  std::vector<AuxEntry> aux;  // without AT_EXECFN, AT_PLATFORM, AT_RANDOM and AT_NULL
  std::array<std::uint8_t, 16> random{};
};

// The root's own vector without what differs in a task.
[[nodiscard]] Result<std::vector<AuxEntry>> inherited_aux();

// Writes it so that it ends at the end of `stack`, whose bytes will be at `address`; returns where
// argc stands (bad_count where there is no room).
[[nodiscard]] Result<std::uint64_t> write_first_stack(const FirstStack& content,
                                                      std::span<std::byte> stack,
                                                      std::uint64_t address);

}  // namespace shima::pvas
