#include "collective/window/window_io.h"

#include "base/clock.h"
#include "base/fault_point.h"

namespace shima {

void WindowIo::begin(const Window& window) {
  window_ = window;
  coverage_.reset(window.range, context_.plan.granule_bytes);
}

Status WindowIo::write_marked(const std::byte* data) {
  const ScopedTimer timer(context_.counters.disk_ns);
  ++context_.counters.windows;
  fault_point(FaultPhase::disk);
  return coverage_.for_each_run(0, [&](TargetRange run) -> Status {
    ++context_.counters.runs;
    context_.counters.disk_bytes_written += run.len_bytes();
    return context_.file.write_in(window_.subfile, run.begin,
                                  data + (run.begin - window_.range.begin), run.len_bytes());
  });
}

Result<TargetOffset> WindowIo::read_marked(std::byte* data) {
  const ScopedTimer timer(context_.counters.disk_ns);
  ++context_.counters.windows;
  fault_point(FaultPhase::disk);
  TargetOffset end = window_.range.end;
  SHIMA_TRY(coverage_.for_each_run(sieve_gap_bytes, [&](TargetRange run) -> Status {
    if (run.begin >= end) return {};
    ++context_.counters.runs;
    SHIMA_TRY_ASSIGN(
        const std::uint64_t n,
        context_.file.read_in(window_.subfile, run.begin, data + (run.begin - window_.range.begin),
                              run.len_bytes()));
    context_.counters.disk_bytes_read += n;
    if (n == run.len_bytes()) return {};
    end = run.begin + as_signed(n);
    SHIMA_TRY_ASSIGN(end_of_file_, context_.file.end_seen_at(window_.subfile, end));
    return {};
  }));
  return end;
}

}  // namespace shima
