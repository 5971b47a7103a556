// Traces calls that may be short and many: LAPI's, those of a distributed shared memory, and
// blocking accesses of one contiguous piece of a file that no other process takes part in.
//
// While there is much room in the trace file, each call has an event of its own. Once a quarter is
// used, short calls of one kind from one place with one task or file and of about one size share an
// event, a *run*. The less room there is, the longer a run lasts, the longer are the calls that it
// takes, and the farther apart in the file, so that a trace does not end before its program. The
// event of a run is in the file from its first call on and is changed there, so the calls of a
// killed process are not lost. A thread has runs of its own, at most 128 at a time. None lasts
// through a pause.
//
// The time of a *tiny* call, which takes less than reading the clock, is measured in some calls of
// a run; between them the clock of the kernel's ticks tells when a run ends.
#pragma once

#include <cstdint>

#include "observe/trace_log.h"

namespace shima {

struct ShortCall {
  CallPlace place;
  int task = -1;            // the other one; -1: none, or not known
  std::uint16_t file = 0;   // of file_number()
  std::uint64_t bytes = 0;  // moved
  std::int64_t offset = 0;
  std::int64_t end = 0;  // 0: offset + bytes
  std::uint32_t pieces = 1;
  bool is_tiny = false;
};

namespace trace {

inline constexpr std::uint64_t not_traced = 0;
inline constexpr std::uint64_t not_measured = 1;
// When the call begins, or not_measured.
[[nodiscard]] std::uint64_t begin(const ShortCall& call) noexcept;
void end(const ShortCall& call, std::uint64_t begin_ns, bool failed) noexcept;
// Of a call that was measured by Traced.
void end(const ShortCall& call, const CallTimes& times, bool failed) noexcept;

}  // namespace trace

// Runs `body`, which returns a Result, and traces it if `is_on`. `describe` returns the call; it is
// asked before and after, so that the body can find out the task. Its captures are references: of
// values, copies would be made for calls that are not traced, too.
template <class Describe, class Body>
[[gnu::always_inline]] inline auto traced_if(bool is_on, const Describe& describe, const Body& body)
    -> decltype(body()) {
  std::uint64_t begin_ns = trace::not_traced;
  if (is_on) [[unlikely]]
    begin_ns = trace::begin(describe());
  auto done = body();
  if (begin_ns != trace::not_traced) [[unlikely]]
    trace::end(describe(), begin_ns, !done);
  return done;
}

}  // namespace shima
