#include "pvas/root/server/reserve.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace shima::pvas {
namespace {

// Small enough that malloc keeps freed blocks instead of unmapping them.
constexpr std::size_t block_bytes = std::size_t{16} << 10;
std::array<void*, 32> blocks{};

void give_up_reserve() {
  bool any = false;
  for (void*& block : blocks) {
    any = any || block != nullptr;
    std::free(block);
    block = nullptr;
  }
  if (!any) throw std::bad_alloc();
}

}  // namespace

void keep_reserve() {
  std::set_new_handler(&give_up_reserve);
  static_cast<void>(reserve_is_whole());
}

bool reserve_is_whole() {
  for (void*& block : blocks)
    if (block == nullptr) block = std::malloc(block_bytes);
  return std::ranges::none_of(blocks, [](const void* block) { return block == nullptr; });
}

void SpareNumber::take() {
  if (!file_) file_ = UniqueFd(::open("/", O_PATH | O_CLOEXEC));
}

void SpareNumber::rest() {
  constexpr unsigned pause_us = 10'000;
  ::usleep(pause_us);
}

}  // namespace shima::pvas
