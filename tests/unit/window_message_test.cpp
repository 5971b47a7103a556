// Runs of a window and their bytes: what is put into a message is what is taken out of it, and a
// message that no process can have sent is refused.
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>

#include "collective/window/window_message.h"

namespace shima {
namespace {

using Random = std::mt19937_64;

std::uint64_t pick(Random& random, std::uint64_t low, std::uint64_t high) {
  return std::uniform_int_distribution<std::uint64_t>(low, high)(random);
}

// A window of at most 200 granules with runs of random density.
Coverage random_runs(Random& random) {
  const std::uint64_t granule = std::uint64_t{1} << pick(random, 0, 6);
  const TargetOffset begin{as_signed(granule * pick(random, 0, 1000))};
  Coverage runs;
  runs.reset({begin, begin + as_signed(granule * pick(random, 1, 200))}, granule);
  const std::uint64_t granules = runs.window().len_bytes() / granule;
  for (std::uint64_t i = pick(random, 0, granules); i > 0; --i) {
    const std::uint64_t at = pick(random, 0, granules - 1);
    const std::uint64_t len = pick(random, 1, std::min<std::uint64_t>(granules - at, 5));
    runs.mark({begin.value + as_signed(at * granule), len * granule, 0, 1});
  }
  return runs;
}

std::vector<std::byte> encoded(const Coverage& runs) {
  std::vector<std::byte> bytes(runs_bytes(runs));
  std::span<std::byte> out = bytes;
  put_runs(out, runs);
  EXPECT_TRUE(out.empty());
  EXPECT_LE(bytes.size(), most_runs_bytes(runs.window().len_bytes(), runs.granule_bytes()));
  return bytes;
}

TEST(WindowMessage, RunsArriveAsTheyWere) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const Coverage sent = random_runs(random);
    const auto bytes = encoded(sent);
    Coverage received;
    received.reset(sent.window(), sent.granule_bytes());
    std::span<const std::byte> in = bytes;
    ASSERT_TRUE(take_runs(in, received).has_value());
    EXPECT_TRUE(in.empty());
    EXPECT_TRUE(std::ranges::equal(received.words(), sent.words()));
  }
}

TEST(WindowMessage, BytesBelowTheEndArrive) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const Coverage runs = random_runs(random);
    const std::uint64_t len = runs.window().len_bytes();
    const TargetOffset end = runs.window().begin + as_signed(pick(random, 0, len + 3));
    std::vector<std::byte> image(len);
    for (std::byte& byte : image) byte = static_cast<std::byte>(pick(random, 1, 255));
    std::vector<std::byte> data(runs.len_bytes());
    data.resize(pack_runs(runs, end, image.data(), data));
    std::vector<std::byte> received(len);
    ASSERT_TRUE(unpack_runs(runs, end, data, received.data()).has_value());
    std::vector<std::byte> expected(len);
    std::ignore = runs.for_each_run(0, [&](TargetRange run) -> Status {
      for (TargetOffset at = run.begin; at < std::min(run.end, end); at = at + 1) {
        const auto place = as_unsigned(at - runs.window().begin);
        expected[place] = image[place];
      }
      return {};
    });
    EXPECT_EQ(received, expected);
    data.push_back({});
    EXPECT_FALSE(unpack_runs(runs, end, data, received.data()).has_value());
  }
}

TEST(WindowMessage, RunsAreFoundInTheirData) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const Coverage runs = random_runs(random);
    std::vector<std::byte> image(runs.window().len_bytes());
    for (std::byte& byte : image) byte = static_cast<std::byte>(pick(random, 1, 255));
    std::vector<std::byte> data(runs.len_bytes());
    ASSERT_EQ(pack_runs(runs, runs.window().end, image.data(), data), data.size());
    const auto found = runs_in(runs, data);
    ASSERT_TRUE(found.has_value());
    std::uint64_t len_bytes = 0;
    for (const RunBytes& run : *found) {
      len_bytes += run.range.len_bytes();
      ASSERT_TRUE(std::equal(run.data, run.data + run.range.len_bytes(),
                             image.data() + (run.range.begin - runs.window().begin)));
    }
    EXPECT_EQ(len_bytes, data.size());
    EXPECT_EQ(has_large_runs(runs), len_bytes >= large_run_bytes * found->size());
    EXPECT_FALSE(runs_in(runs, std::span(data).first(data.size() - 1)).has_value());
    data.push_back({});
    EXPECT_FALSE(runs_in(runs, data).has_value());
  }
}

// Any bytes at all: refused, or runs inside the window.
TEST(WindowMessage, DamagedRunsStayInTheWindow) {
  for (std::uint64_t seed = 0; seed < 5000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const Coverage sent = random_runs(random);
    auto bytes = encoded(sent);
    bytes.resize(pick(random, 0, bytes.size()));
    for (std::uint64_t i = pick(random, 0, 4); i > 0 && !bytes.empty(); --i)
      bytes[pick(random, 0, bytes.size() - 1)] = static_cast<std::byte>(pick(random, 0, 255));
    Coverage received;
    received.reset(sent.window(), sent.granule_bytes());
    std::span<const std::byte> in = bytes;
    if (!take_runs(in, received)) continue;
    EXPECT_LE(received.len_bytes(), sent.window().len_bytes());
  }
}

TEST(WindowMessage, WindowsHaveNumbers) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const std::uint64_t size = 4096 * pick(random, 1, 4);
    std::vector<Domain> domains;
    for (int i = 0; i < 3; ++i) {
      const TargetOffset begin{as_signed(pick(random, 0, 100000))};
      domains.push_back({i, {begin, begin + as_signed(pick(random, 1, 100000))}});
    }
    const auto index = pick(random, 0, 2);
    const Domain& domain = domains[index];
    const TargetOffset at =
        domain.range.begin + as_signed(pick(random, 0, domain.range.len_bytes() - 1));
    const Window window{static_cast<int>(index), domain.subfile, window_at(at, size, domain.range)};
    const auto found = window_of(id_of(window, size), domains, size);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->range, window.range);
    EXPECT_EQ(found->subfile, window.subfile);
    const std::int64_t beyond = domain.range.end.value / as_signed(size) + 1;
    EXPECT_FALSE(window_of({beyond, window.domain}, domains, size).has_value());
    EXPECT_FALSE(window_of({}, domains, size).has_value());
    EXPECT_FALSE(window_of({0, 3}, domains, size).has_value());
    EXPECT_FALSE(window_of({0, -1}, domains, size).has_value());
  }
}

// The last window ends with the domain, not beyond the largest offset.
TEST(WindowMessage, AWindowMayEndWithTheLargestOffset) {
  constexpr std::int64_t last = std::numeric_limits<std::int64_t>::max();
  constexpr std::uint64_t size = 4096;
  const std::vector<Domain> domains{{0, {{0}, {last}}}};
  const auto found = window_of({last / as_signed(size), 0}, domains, size);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->range, (TargetRange{{last - 4095}, {last}}));
}

}  // namespace
}  // namespace shima
