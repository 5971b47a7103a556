// The bitmap of a window against an array of bools: all marked bytes come out as runs, in order.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

#include "collective/window/coverage.h"

namespace shima {
namespace {

using Random = std::mt19937_64;

std::int64_t pick(Random& random, std::int64_t low, std::int64_t high) {
  return std::uniform_int_distribution<std::int64_t>(low, high)(random);
}

struct Model {
  TargetRange window;
  std::vector<bool> marked;  // per byte

  void mark(const Strip& strip) {
    for (std::uint64_t i = 0; i < strip.count; ++i)
      for (std::uint64_t b = 0; b < strip.len_bytes; ++b)
        marked[as_unsigned(strip.offset + as_signed(i) * strip.stride_bytes + as_signed(b) -
                           window.begin.value)] = true;
  }
  [[nodiscard]] std::vector<TargetRange> runs(std::int64_t join_gap) const {
    std::vector<TargetRange> found;
    for (std::size_t i = 0; i < marked.size(); ++i) {
      if (!marked[i]) continue;
      const TargetOffset at = window.begin + static_cast<std::int64_t>(i);
      if (!found.empty() && (found.back().end == at || at - found.back().end < join_gap))
        found.back().end = at + 1;
      else
        found.push_back({at, at + 1});
    }
    return found;
  }
};

std::vector<TargetRange> runs_of(const Coverage& coverage, std::uint64_t join_gap) {
  std::vector<TargetRange> found;
  EXPECT_TRUE(coverage
                  .for_each_run(join_gap,
                                [&](TargetRange run) -> Status {
                                  found.push_back(run);
                                  return {};
                                })
                  .has_value());
  return found;
}

// A strip inside a window of `granules`, in multiples of `granule` bytes.
Strip random_strip(Random& random, const Model& model, std::int64_t granule) {
  const auto granules = as_signed(model.window.len_bytes()) / granule;
  const std::int64_t len =
      pick(random, 0, 2) == 0 ? 1 : pick(random, 1, std::min<std::int64_t>(granules, 90));
  const std::int64_t stride = len + pick(random, 0, 70);
  const std::int64_t first = pick(random, 0, granules - len);
  const std::int64_t count = pick(random, 1, (granules - len - first) / stride + 1);
  return {model.window.begin.value + first * granule, as_unsigned(len * granule), stride * granule,
          as_unsigned(count)};
}

TEST(Coverage, RunsAreWhatWasMarked) {
  Coverage coverage;  // reused: reset must clear it
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const std::int64_t granule =
        std::array<std::int64_t, 4>{1, 3, 8, 512}[as_unsigned(pick(random, 0, 3))];
    const TargetOffset begin{granule * pick(random, 0, 100)};
    Model model{{begin, begin + granule * pick(random, 1, 700)}, {}};
    model.marked.resize(model.window.len_bytes());
    coverage.reset(model.window, as_unsigned(granule));
    for (auto i = pick(random, 0, 5); i > 0; --i) {
      const Strip strip = random_strip(random, model, granule);
      coverage.mark(strip);
      model.mark(strip);
    }
    EXPECT_EQ(runs_of(coverage, 0), model.runs(0));
    const auto gap = pick(random, 1, 40 * granule);
    EXPECT_EQ(runs_of(coverage, as_unsigned(gap)), model.runs(gap)) << "gap " << gap;
    if (HasFailure()) return;
  }
}

TEST(Coverage, AnErrorEndsTheVisit) {
  Coverage coverage;
  coverage.reset({{0}, {100}}, 1);
  coverage.mark({0, 1, 10, 5});
  int visits = 0;
  const Status status = coverage.for_each_run(0, [&](TargetRange) -> Status {
    return ++visits == 2 ? Status(fail(Code::io, "stop")) : Status{};
  });
  EXPECT_FALSE(status.has_value());
  EXPECT_EQ(visits, 2);
}

}  // namespace
}  // namespace shima
