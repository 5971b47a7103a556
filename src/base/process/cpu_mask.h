// A set of CPUs of any machine that Linux runs on; plain data, may be stored in shared memory.
//
// glibc's cpu_set_t ends at CPU 1023, and with it the kernel refuses to return the set of a larger
// machine.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <array>
#include <bit>
#include <cstdint>

namespace shima {

struct CpuMask {
  static constexpr int most_cpus = 8192;  // the largest CONFIG_NR_CPUS
  std::array<std::uint64_t, most_cpus / 64> words{};

  // The CPUs on which the calling thread may run; empty if the kernel does not return them.
  [[nodiscard]] static CpuMask own() { return of(0); }
  // The same of the first thread of a process.
  [[nodiscard]] static CpuMask of(pid_t process) {
    CpuMask mask;
    if (::sched_getaffinity(process, sizeof mask.words, mask.as_set()) != 0) mask.words.fill(0);
    return mask;
  }
  [[nodiscard]] int count() const {
    int total = 0;
    for (const std::uint64_t word : words) total += std::popcount(word);
    return total;
  }
  [[nodiscard]] bool has(int cpu) const {
    return (words[static_cast<std::size_t>(cpu / 64)] >> (cpu % 64) & 1) != 0;
  }
  [[nodiscard]] bool has_all(const CpuMask& other) const {
    for (std::size_t i = 0; i < words.size(); ++i)
      if ((other.words[i] & ~words[i]) != 0) return false;
    return true;
  }
  void insert(int cpu) {
    words[static_cast<std::size_t>(cpu / 64)] |= std::uint64_t{1} << (cpu % 64);
  }
  void add(const CpuMask& other) {
    for (std::size_t i = 0; i < words.size(); ++i) words[i] |= other.words[i];
  }
  void remove(int cpu) {
    words[static_cast<std::size_t>(cpu / 64)] &= ~(std::uint64_t{1} << (cpu % 64));
  }
  // Restricts the calling thread to these CPUs. An empty set changes nothing.
  void bind_thread() const {
    if (count() == 0) return;
    CpuMask copy = *this;
    ::sched_setaffinity(0, sizeof copy.words, copy.as_set());
  }

 private:
  [[nodiscard]] cpu_set_t* as_set() { return reinterpret_cast<cpu_set_t*>(words.data()); }
};

}  // namespace shima
