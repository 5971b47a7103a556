// What a traced call reads before its event is written, in one line of the cache: the bytes that a
// call moves have evicted all lines before it ends, and to load one costs more than to use it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "observe/trace_file.h"

namespace shima::trace {

// Bits of the state. A forked process has none of them: it shares the file, and is not traced.
inline constexpr unsigned is_open = 1;
inline constexpr unsigned is_paused = 2;

struct alignas(64) TraceSpace {
  std::atomic<unsigned> state{0};
  std::atomic<unsigned> pauses{0};  // how often the trace has been paused
  // How the processor's counter advances (TickScale::ns_per_tick()); 0: it is not read.
  std::atomic<std::uint64_t> ns_per_tick{0};
  // Of the open file, which stays mapped: calls may come while the process exits.
  TraceHead* head = nullptr;
  std::byte* events = nullptr;
  std::atomic<std::size_t> allocated_bytes{0};  // for events
  std::atomic<std::size_t> limit_bytes{0};      // lower, once no disk space can be allocated
};
extern constinit TraceSpace space;

}  // namespace shima::trace
