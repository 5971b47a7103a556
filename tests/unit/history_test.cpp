// The history of a file: trials stay in their budget, the cheaper strategy is used, and members
// that joined the same durations decide alike.
#include <gtest/gtest.h>

#include "situation.h"

namespace shima {
namespace {

using test::interleaved;
using test::members_on;
using test::pick;
using test::post_of;
using test::Random;
using test::Situation;

Situation on_two_nodes(std::uint64_t pieces = 100) {
  return {
      .posts = interleaved(8, pieces, 32768), .members = members_on(2, 8, 2), .one_node = false};
}

// How long a call takes, by its strategy, in ns.
using Costs = std::array<std::uint64_t, strategy_count>;

std::uint64_t of(const Costs& costs, Strategy strategy) {
  return costs[static_cast<std::size_t>(strategy)];
}

struct Sequence {
  std::array<int, strategy_count> calls{};
  std::array<int, reason_count> decided{};
  std::uint64_t all_ns = 0;
  std::uint64_t trials_ns = 0;
  Choice last;

  [[nodiscard]] int by(Strategy strategy) const {
    return calls[static_cast<std::size_t>(strategy)];
  }
  [[nodiscard]] int because(Reason reason) const {
    return decided[static_cast<std::size_t>(reason)];
  }
};

// `count` calls as one member sees them: each brings the duration of the one before it.
Sequence run_calls(Situation& situation, const Costs& costs, int count, Random& random,
                   int noise_percent = 0) {
  History history;
  Sequence run;
  std::uint64_t last_ns = 0;
  for (int i = 0; i < count; ++i) {
    history.end(last_ns);
    const Digest digest = situation.digest();
    run.last =
        make_plan(digest, Direction::write, situation.terrain(), situation.tuning, &history).choice;
    const bool is_trial = run.last.reason == Reason::trial;
    history.begin(digest, Direction::write, run.last.strategy, is_trial);
    last_ns = of(costs, run.last.strategy) *
              (100 + pick(random, 0, static_cast<std::uint64_t>(noise_percent))) / 100;
    ++run.calls[static_cast<std::size_t>(run.last.strategy)];
    ++run.decided[static_cast<std::size_t>(run.last.reason)];
    run.all_ns += last_ns;
    if (is_trial) run.trials_ns += last_ns;
    EXPECT_TRUE(run.trials_ns * 20 <= run.all_ns) << "after call " << i;
  }
  return run;
}

constexpr std::uint64_t ms = 1'000'000;

// disk_directed, two_phase, subgroup, independent
constexpr Costs alike{10 * ms, 10 * ms, 10 * ms, 10 * ms};
constexpr Costs disk_directed_is_best{5 * ms, 20 * ms, 10 * ms, 30 * ms};
constexpr Costs two_phase_is_best{30 * ms, 8 * ms, 10 * ms, 12 * ms};

TEST(History, TriesNothingInAFileOfFewCalls) {
  Random random(1);
  Situation situation = on_two_nodes();
  const Sequence run = run_calls(situation, disk_directed_is_best, 79, random);
  EXPECT_EQ(run.by(Strategy::subgroup), 79);
  EXPECT_EQ(run.because(Reason::between_nodes), 79);
}

TEST(History, UsesWhatIsClearlyCheaper) {
  Random random(2);
  Situation situation = on_two_nodes();
  Sequence run = run_calls(situation, disk_directed_is_best, 2000, random, 5);
  EXPECT_EQ(run.last.strategy, Strategy::disk_directed);
  EXPECT_GT(run.because(Reason::history), 1500);
  run = run_calls(situation, two_phase_is_best, 2000, random, 5);
  EXPECT_EQ(run.last.strategy, Strategy::two_phase);
  EXPECT_EQ(run.by(Strategy::disk_directed), 1);  // three times as dear: one trial is enough
}

TEST(History, KeepsTheUsualStrategyIfNoneIsClearlyCheaper) {
  Random random(3);
  Situation situation = on_two_nodes();
  for (const Costs& costs : {alike, Costs{95 * ms / 10, 95 * ms / 10, 10 * ms, 95 * ms / 10}}) {
    const Sequence run = run_calls(situation, costs, 2000, random);
    EXPECT_EQ(run.because(Reason::history), 0);
    EXPECT_EQ(run.because(Reason::trial), 9);  // three of each alternative
    EXPECT_EQ(run.last.strategy, Strategy::subgroup);
  }
}

TEST(History, TrialsTakeATwentiethOfTheTime) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    Situation situation = on_two_nodes();
    Costs costs{};
    for (std::uint64_t& cost : costs) cost = pick(random, 10, 30) * ms;
    run_calls(situation, costs, 600, random, 20);  // checks the budget after every call
    if (HasFailure()) return;
  }
}

// A first trial that costs more than its reserve of four usual calls exceeds the budget, and can do
// so in each class of calls. A trial begins only within the budget, so the excesses do not add up:
// of one that costs C, at most C - 4 usual calls - C / 20 are beyond the budget after it.
TEST(History, DearTrialsExceedTheBudgetOneByOne) {
  constexpr std::uint64_t usual_cost = 400;  // ns for 1024 bytes, which the history keeps exactly
  constexpr std::uint64_t dear = 10;
  constexpr std::uint64_t most_excess = 19 * dear - 20 * 4;  // in twentieths of a usual call
  std::array<Situation, 3> classes{on_two_nodes(100), on_two_nodes(200), on_two_nodes(400)};
  History history;
  std::uint64_t all_ns = 0;
  std::uint64_t trials_ns = 0;
  int trials = 0;
  int exceeding = 0;
  for (std::size_t call = 0; call < 3000; ++call) {
    Situation& situation = classes[call % classes.size()];
    const Digest digest = situation.digest();
    const Choice choice =
        choose(digest, Direction::write, situation.terrain(), situation.tuning, &history);
    const bool is_trial = choice.reason == Reason::trial;
    ASSERT_EQ(is_trial, choice.strategy != Strategy::subgroup);
    const std::uint64_t usual_ns = digest.len_bytes / 1024 * usual_cost;
    const std::uint64_t ns = is_trial ? dear * usual_ns : usual_ns;
    history.begin(digest, Direction::write, choice.strategy, is_trial);
    history.end(ns);
    all_ns += ns;
    if (!is_trial) continue;
    trials_ns += ns;
    ++trials;
    if (trials_ns * 20 > all_ns) ++exceeding;
    EXPECT_LE(trials_ns * 20, all_ns + most_excess * usual_ns) << "call " << call;
  }
  EXPECT_EQ(trials, 9);  // one of each alternative in each class
  EXPECT_GT(exceeding, 1);
  EXPECT_LE(trials_ns * 20, all_ns);  // the calls after the last trial have made up for it
}

TEST(History, HintsAndRulesAreNotTried) {
  Random random(4);
  Situation situation = on_two_nodes();
  situation.tuning.strategy = Strategy::subgroup;
  EXPECT_EQ(run_calls(situation, disk_directed_is_best, 500, random).by(Strategy::subgroup), 500);
  situation.tuning = {};
  situation.tuning.path = Path::pack;
  EXPECT_EQ(run_calls(situation, disk_directed_is_best, 500, random).by(Strategy::subgroup), 500);
  situation.tuning = {};
  situation.caches = Caches::apart;
  EXPECT_EQ(run_calls(situation, disk_directed_is_best, 500, random).by(Strategy::subgroup), 500);
  situation = {.posts = {post_of(1, 1000, 0, 0), post_of(1, 1000, 0, 1000)},
               .members = members_on(1, 2, 2)};
  EXPECT_EQ(run_calls(situation, disk_directed_is_best, 500, random).by(Strategy::independent),
            500);
}

// A size of call that was never measured starts from nothing.
TEST(History, BelongsToAClassOfCalls) {
  History history;
  Situation situation = on_two_nodes();
  const Digest digest = situation.digest();
  for (int i = 0; i < 500; ++i) {
    history.begin(digest, Direction::write, Strategy::subgroup, false);
    history.end(10 * ms);
  }
  const std::array others{Strategy::disk_directed};
  const auto trial = [&](const Digest& of_call, Direction direction) {
    return history.trial(class_of(of_call, direction), of_call.len_bytes, Strategy::subgroup,
                         others);
  };
  EXPECT_TRUE(trial(digest, Direction::write).has_value());
  EXPECT_FALSE(trial(digest, Direction::read).has_value());
  situation.posts = interleaved(8, 10, 32768);
  EXPECT_FALSE(trial(situation.digest(), Direction::write).has_value());
}

TEST(History, AFailedCallLeavesNothing) {
  History history;
  const Digest digest = on_two_nodes().digest();
  for (int i = 0; i < 500; ++i) {
    history.begin(digest, Direction::write, Strategy::subgroup, false);
    history.forget();
    history.end(10 * ms);
  }
  EXPECT_FALSE(history
                   .trial(class_of(digest, Direction::write), digest.len_bytes, Strategy::subgroup,
                          std::array{Strategy::disk_directed})
                   .has_value());
}

// Members bring different durations, which are joined in any order.
TEST(History, IsTheSameOnAllMembers) {
  constexpr int members = 6;
  Random random(5);
  Situation situation = on_two_nodes();
  const Digest one = situation.digest();
  std::vector<History> histories(members);
  std::vector<std::uint64_t> last_ns(members, 0);
  for (int call = 0; call < 800; ++call) {
    std::vector<Choice> choices;
    for (History& history : histories) {
      std::ranges::shuffle(last_ns, random);
      Digest joined = one;
      for (const std::uint64_t ns : last_ns) {
        Digest mine;
        mine.last_ns = ns;
        joined = pick(random, 0, 1) == 0 ? join(joined, mine) : join(mine, joined);
      }
      history.end(joined.last_ns);
      choices.push_back(
          choose(joined, Direction::write, situation.terrain(), situation.tuning, &history));
      history.begin(joined, Direction::write, choices.back().strategy,
                    choices.back().reason == Reason::trial);
    }
    for (const Choice& choice : choices) {
      ASSERT_EQ(choice.strategy, choices.front().strategy);
      ASSERT_EQ(choice.reason, choices.front().reason);
    }
    for (std::uint64_t& ns : last_ns)
      ns = of(two_phase_is_best, choices.front().strategy) * pick(random, 50, 100) / 100;
  }
}

}  // namespace
}  // namespace shima
