#include "collective/window/window_message.h"

#include <algorithm>

#include "base/copy/distance.h"

namespace shima {
namespace {

struct RunsHead {
  std::uint64_t run_count = 0;  // 0: a word of bits for every 64 granules follows
};

// In granules from the window's begin.
struct Run {
  std::uint32_t begin = 0;
  std::uint32_t len = 0;
};

std::uint64_t count_runs(const Coverage& runs) {
  std::uint64_t count = 0;
  std::ignore = runs.for_each_run(0, [&](TargetRange) -> Status {
    ++count;
    return {};
  });
  return count;
}

bool is_list(std::uint64_t run_count, const Coverage& runs) {
  return run_count > 0 && run_count < runs.words().size();
}

std::unexpected<Error> damaged() {
  return fail(Code::internal, "a window's message of another node: the runs are damaged");
}

// The part of a run below `end`.
std::uint64_t below(TargetRange run, TargetOffset end) {
  return TargetRange{run.begin, std::min(run.end, end)}.len_bytes();
}

}  // namespace

WindowId id_of(const Window& window, std::uint64_t window_bytes) {
  return {window.range.begin.value / as_signed(window_bytes), window.domain};
}

Result<Window> window_of(const WindowId& id, std::span<const Domain> domains,
                         std::uint64_t window_bytes) {
  const auto refused = [] {
    return fail(Code::internal, "a message of another node: no such window");
  };
  const auto index = static_cast<std::size_t>(id.domain);
  const std::int64_t size = as_signed(window_bytes);
  if (id.none() || index >= domains.size() || id.number > domains[index].range.end.value / size)
    return refused();
  const Domain& domain = domains[index];
  const TargetRange range = window_at({id.number * size}, window_bytes, domain.range);
  if (range.empty()) return refused();
  return Window{id.domain, domain.subfile, range};
}

std::size_t runs_bytes(const Coverage& runs) {
  const std::uint64_t count = count_runs(runs);
  return sizeof(RunsHead) +
         (is_list(count, runs) ? count * sizeof(Run) : runs.words().size_bytes());
}

std::size_t most_runs_bytes(std::uint64_t window_bytes, std::uint64_t granule_bytes) {
  return sizeof(RunsHead) + (window_bytes / granule_bytes + 63) / 64 * 8;
}

void put_runs(std::span<std::byte>& out, const Coverage& runs) {
  const std::uint64_t count = count_runs(runs);
  if (!is_list(count, runs)) {
    put_into(out, RunsHead{0});
    std::memcpy(out.data(), runs.words().data(), runs.words().size_bytes());
    out = out.subspan(runs.words().size_bytes());
    return;
  }
  put_into(out, RunsHead{count});
  std::ignore = runs.for_each_run(0, [&](TargetRange run) -> Status {
    const auto granules = [&](std::uint64_t bytes) {
      return static_cast<std::uint32_t>(bytes / runs.granule_bytes());
    };
    put_into(out, Run{granules(as_unsigned(run.begin - runs.window().begin)),
                      granules(run.len_bytes())});
    return {};
  });
}

Status take_runs(std::span<const std::byte>& in, Coverage& runs) {
  SHIMA_TRY_ASSIGN(const RunsHead head, take_from<RunsHead>(in));
  if (head.run_count == 0) {
    const std::size_t len = runs.words().size_bytes();
    if (in.size() < len || !runs.set_words(in.first(len))) return damaged();
    in = in.subspan(len);
    return {};
  }
  const std::uint64_t granules = runs.window().len_bytes() / runs.granule_bytes();
  for (std::uint64_t i = 0; i < head.run_count; ++i) {
    SHIMA_TRY_ASSIGN(const Run run, take_from<Run>(in));
    if (run.len == 0 || std::uint64_t{run.begin} + run.len > granules) return damaged();
    runs.mark({runs.window().begin.value + as_signed(run.begin * runs.granule_bytes()),
               run.len * runs.granule_bytes(), 0, 1});
  }
  return {};
}

bool has_large_runs(const Coverage& runs) {
  return runs.len_bytes() >= large_run_bytes * count_runs(runs);
}

Result<std::vector<RunBytes>> runs_in(const Coverage& runs, std::span<const std::byte> data) {
  std::vector<RunBytes> found;
  SHIMA_TRY(runs.for_each_run(0, [&](TargetRange run) -> Status {
    if (data.size() < run.len_bytes()) return damaged();
    found.push_back({run, data.data()});
    data = data.subspan(run.len_bytes());
    return {};
  }));
  if (!data.empty()) return damaged();
  return found;
}

std::size_t pack_runs(const Coverage& runs, TargetOffset end, const std::byte* image,
                      std::span<std::byte> data) {
  std::size_t at = 0;
  std::ignore = runs.for_each_run(0, [&](TargetRange run) -> Status {
    const std::uint64_t len = below(run, end);
    copy_bytes(data.data() + at, image + (run.begin - runs.window().begin), len);
    at += len;
    return {};
  });
  return at;
}

Status unpack_runs(const Coverage& runs, TargetOffset end, std::span<const std::byte> data,
                   std::byte* image) {
  SHIMA_TRY(runs.for_each_run(0, [&](TargetRange run) -> Status {
    const std::uint64_t len = below(run, end);
    if (data.size() < len) return damaged();
    copy_bytes(image + (run.begin - runs.window().begin), data.data(), len);
    data = data.subspan(len);
    return {};
  }));
  return data.empty() ? Status{} : damaged();
}

}  // namespace shima
