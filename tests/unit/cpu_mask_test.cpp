// Sets of CPUs, on a machine with more than glibc's cpu_set_t can name.
#include "base/process/cpu_mask.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

namespace {

constexpr std::size_t machine_bytes = 2048 / 8;
constexpr int own_cpu = 1500;
std::size_t bound_bytes = 0;

}  // namespace

// The kernel of a machine with 2048 CPUs, in place of libc's calls.
extern "C" int sched_getaffinity(pid_t, std::size_t len_bytes, cpu_set_t* set) noexcept {
  if (len_bytes < machine_bytes) {
    errno = EINVAL;
    return -1;
  }
  std::memset(set, 0, len_bytes);
  reinterpret_cast<unsigned char*>(set)[own_cpu / 8] = 1U << (own_cpu % 8);
  return 0;
}

extern "C" int sched_setaffinity(pid_t, std::size_t len_bytes, const cpu_set_t* set) noexcept {
  bound_bytes = len_bytes;
  return (reinterpret_cast<const unsigned char*>(set)[0] & 1) == 0 ? 0 : -1;
}

namespace shima {
namespace {

TEST(CpuMask, HoldsCpusOfLargeMachines) {
  const CpuMask mask = CpuMask::own();
  EXPECT_EQ(mask.count(), 1);
  EXPECT_TRUE(mask.has(own_cpu));
  EXPECT_FALSE(mask.has(0));
}

TEST(CpuMask, UnitesSets) {
  CpuMask all;
  all.words[0] = 2;
  all.add(CpuMask::own());
  EXPECT_EQ(all.count(), 2);
  EXPECT_TRUE(all.has(1) && all.has(own_cpu));
}

TEST(CpuMask, AnEmptySetBindsNothing) {
  CpuMask{}.bind_thread();
  EXPECT_EQ(bound_bytes, 0U);
  CpuMask::own().bind_thread();
  EXPECT_EQ(bound_bytes, sizeof(CpuMask::words));
}

}  // namespace
}  // namespace shima
