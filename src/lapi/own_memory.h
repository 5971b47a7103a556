// Which memory of this process may be read, written or executed, as the kernel says it.
//
// Addresses come in messages of other tasks. A wrong one must not end this task, so it is looked up
// before it is used. The mappings are read from /proc/self/maps when an address is in none of those
// that are known. What the program has unmapped since is not noticed: using that ends it, as any
// pointer would.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace shima::lapi {

enum class Use : std::uint8_t { read, write, execute };

class OwnMemory {
 public:
  // Of no bytes, everything is allowed.
  [[nodiscard]] bool allows(std::uint64_t address, std::uint64_t len_bytes, Use use);

 private:
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    bool may_read = false;
    bool may_write = false;
    bool may_execute = false;

    [[nodiscard]] bool allows(Use use) const {
      return use == Use::read ? may_read : use == Use::write ? may_write : may_execute;
    }
    // Joins the next range, if it is of the same kind.
    [[nodiscard]] bool take(const Range& next) {
      if (next.begin != end || next.may_read != may_read || next.may_write != may_write ||
          next.may_execute != may_execute)
        return false;
      end = next.end;
      return true;
    }
  };
  [[nodiscard]] bool is_known(std::uint64_t begin, std::uint64_t end, Use use);
  [[nodiscard]] bool look();

  std::array<Range, 2> recent_;  // most messages name the same data and counter again
  std::size_t oldest_ = 0;
  std::vector<Range> ranges_;  // in order; neighbours of one kind are joined
};

// The code of this task that an address names: the address itself, unless it is in a file that this
// task has loaded elsewhere (own_code.cpp).
[[nodiscard]] std::uint64_t own_code_at(std::uint64_t address);

}  // namespace shima::lapi
