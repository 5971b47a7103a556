#include "collective/window_io.h"

#include "base/clock.h"
#include "base/fault_point.h"

namespace shima {

// Reading a gap this long from the page cache takes about as long as another system call.
constexpr std::uint64_t sieve_gap_bytes = 16 * 1024;

void WindowIo::begin(FileRange window) {
  window_ = window;
  coverage_.reset(window, job_.plan.granule_bytes);
  ++job_.counters.windows;
}

Status WindowIo::write_marked(const std::byte* data) {
  const Span span(job_.counters.disk_ns);
  fault_point(FaultPhase::disk);
  return coverage_.for_each_run(0, [&](FileRange run) -> Status {
    ++job_.counters.runs;
    job_.counters.disk_bytes_written += run.len_bytes();
    return job_.file.write(run.begin, data + (run.begin - window_.begin), run.len_bytes());
  });
}

Result<FileOffset> WindowIo::read_marked(std::byte* data) {
  const Span span(job_.counters.disk_ns);
  fault_point(FaultPhase::disk);
  FileOffset end = window_.end;
  SHIMA_TRY(coverage_.for_each_run(sieve_gap_bytes, [&](FileRange run) -> Status {
    if (run.begin >= end) return {};
    ++job_.counters.runs;
    SHIMA_TRY_ASSIGN(
        const std::uint64_t n,
        job_.file.read(run.begin, data + (run.begin - window_.begin), run.len_bytes()));
    job_.counters.disk_bytes_read += n;
    if (n < run.len_bytes()) end = run.begin + as_signed(n);
    return {};
  }));
  return end;
}

}  // namespace shima
