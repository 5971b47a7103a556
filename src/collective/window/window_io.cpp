#include "collective/window/window_io.h"

#include <vector>

#include "base/clock.h"
#include "base/fault_point.h"
#include "store/subfile/close_runs.h"
#include "store/subfile/pieces.h"

namespace shima {
namespace {

// Then reading the few other bytes costs less than marking each piece. Members that want more bytes
// than there are want the same ones, and perhaps few.
bool wants_nearly_all(std::span<MemberWalk* const> members, const Window& window) {
  std::uint64_t wanted_bytes = 0;
  for (const MemberWalk* member : members) wanted_bytes += member->bytes_below(window.range.end);
  const std::uint64_t all_bytes = window.range.len_bytes();
  return wanted_bytes >= all_bytes / 8 * 7 && wanted_bytes <= all_bytes;
}

}  // namespace

void WindowIo::begin(const Window& window) {
  window_ = window;
  coverage_.reset(window.range, context_.plan.granule_bytes);
}

void WindowIo::mark(std::span<MemberWalk* const> members) {
  if (context_.direction == Direction::read && wants_nearly_all(members, window_)) {
    const TargetRange& all = window_.range;
    coverage_.mark({all.begin.value, all.len_bytes(), as_signed(all.len_bytes()), 1});
    return;
  }
  for (const MemberWalk* member : members)
    member->look_below(window_.range.end, [&](const Strip& strip) { coverage_.mark(strip); });
}

void WindowIo::begin_write() {
  ++context_.counters.windows;
  fault_point(FaultPhase::disk);
}

Status WindowIo::write(TargetOffset begin, std::span<const iovec> run) {
  ++context_.counters.runs;
  context_.counters.disk_bytes_written += bytes_in(run);
  return context_.file.write_in(window_.subfile, begin, run);
}

// False if the first runs do not lie close together, or if all must be written in the usual way.
bool WindowIo::write_mapped(const std::byte* data) {
  if (!context_.file.maps_writes()) return false;
  constexpr std::size_t most_runs = 16 * 1024;  // at once
  std::vector<iovec> runs;                      // in the window's buffer
  std::vector<ApartRun> apart;
  std::uint64_t written = 0;
  std::uint64_t len_bytes = 0;
  const auto write_them = [&] {
    apart.clear();
    for (const iovec& run : runs) {
      const auto at = static_cast<const std::byte*>(run.iov_base) - data;
      apart.push_back({window_.range.begin + at, std::span(&run, 1), run.iov_len});
    }
    if (written == 0 && !lie_close(apart)) return false;
    const bool well = apart.empty() || context_.file.write_mapped_in(window_.subfile, apart);
    written += runs.size();
    len_bytes += bytes_in(runs);
    runs.clear();
    return well;
  };
  const Status all = coverage_.for_each_run(0, [&](TargetRange run) -> Status {
    runs.push_back(
        {const_cast<std::byte*>(data) + (run.begin - window_.range.begin), run.len_bytes()});
    if (runs.size() < most_runs || write_them()) return {};
    return fail(Code::io, Words());
  });
  if (!all || !write_them()) return false;
  context_.counters.runs += written;
  context_.counters.disk_bytes_written += len_bytes;
  return true;
}

Status WindowIo::write_marked(const std::byte* data) {
  const ScopedTimer timer(context_.counters.disk_ns);
  begin_write();
  if (write_mapped(data)) return {};
  return coverage_.for_each_run(0, [&](TargetRange run) -> Status {
    const iovec piece{const_cast<std::byte*>(data) + (run.begin - window_.range.begin),
                      run.len_bytes()};
    return write(run.begin, std::span(&piece, 1));
  });
}

std::unique_ptr<FileView> WindowIo::view() {
  const ScopedTimer timer(context_.counters.disk_ns);
  std::uint64_t runs = 0;
  std::uint64_t wanted_bytes = 0;
  std::ignore = coverage_.for_each_run(sieve_gap_bytes, [&](TargetRange run) -> Status {
    ++runs;
    wanted_bytes += run.len_bytes();
    return {};
  });
  auto view = context_.file.view_in(window_.subfile, window_.range, {runs, wanted_bytes});
  if (!view) return view;
  fault_point(FaultPhase::disk);
  ++context_.counters.windows;
  context_.counters.runs += runs;
  context_.counters.disk_bytes_read += wanted_bytes;
  return view;
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
