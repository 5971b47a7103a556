#include "base/copy/distance.h"

#include <chrono>
#include <cstdlib>
#include <memory>

#include "base/clock.h"

namespace shima {

#ifdef __x86_64__
namespace {

constexpr std::size_t page_bytes = 4096;

void rep_movsb(std::byte* to, const std::byte* from, std::size_t len_bytes) {
  __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(len_bytes) : : "memory");
}

// The shortest time of several, so that an interrupt does not count.
Clock::duration time_of_copies(std::byte* to, const std::byte* from) {
  auto shortest = Clock::duration::max();
  for (int attempt = 0; attempt < 6; ++attempt) {
    const auto begin = Clock::now();
    rep_movsb(to, from, page_bytes);
    rep_movsb(to, from, page_bytes);
    shortest = std::min(shortest, Clock::now() - begin);
  }
  return shortest;
}

bool copies_slowly_at_short_distance() {
  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };
  const std::unique_ptr<std::byte, Free> pages(
      static_cast<std::byte*>(std::aligned_alloc(page_bytes, 3 * page_bytes)));
  if (!pages) return false;
  std::memset(pages.get(), 0, 3 * page_bytes);
  std::byte* const to = pages.get() + page_bytes;
  const auto usual = time_of_copies(to + 64, pages.get());
  const auto short_distance = time_of_copies(to + 16, pages.get());
  return short_distance > 2 * usual;
}

}  // namespace

bool has_slow_distances() {
  static const bool has = copies_slowly_at_short_distance();
  return has;
}

#else

bool has_slow_distances() { return false; }

#endif

}  // namespace shima
