// TIMEOUT: 300
// Collective transfers by every strategy and path, against the model.
#include <gtest/gtest.h>

#include "collective_model.h"

namespace shima {
namespace {

struct Way {
  const char* name;
  std::optional<Path> path;
  int nodes;
  bool can_pull_across;
  bool collective;
  bool striped;
  bool one_space = false;
  std::optional<Strategy> strategy = {};
};

class EveryWay : public CollectiveTest, public testing::WithParamInterface<Way> {
 protected:
  Scenario scenario(Random& random) {
    const Way& way = GetParam();
    Scenario made;
    made.world.members = static_cast<int>(
        pick(random, static_cast<std::uint64_t>(way.nodes), std::max<std::uint64_t>(8, way.nodes)));
    made.world.cores = static_cast<int>(pick(random, 1, 4));
    made.world.nodes = way.nodes;
    made.world.can_pull_across = way.can_pull_across;
    made.world.one_space = way.one_space;
    made.path = way.path;
    made.strategy = way.strategy;
    made.collective = way.collective;
    made.window_bytes = pick(random, 0, 1) * 4096 * pick(random, 1, 8);
    made.subgroup_members = static_cast<int>(pick(random, 0, 3));
    made.requests = pick(random, 0, 1) == 0 ? RequestsTo::all : RequestsTo::touched;
    made.world.placement = static_cast<test::Placement>(pick(random, 0, 2));
    made.disordered = pick(random, 0, 4) == 0;
    regions_.clear();
    if (way.striped) regions_ = random_regions(random, {"beside"});
    return made;
  }
};

TEST_P(EveryWay, WritesWhatTheModelSays) {
  for (int round = 0; round < rounds(); ++round) {
    const std::uint64_t seed = first_seed() + static_cast<std::uint64_t>(round);
    SCOPED_TRACE("SHIMA_SEED=" + std::to_string(seed));
    Random random(seed);
    check_write(random, scenario(random));
    if (HasFatalFailure()) return;
  }
}

TEST_P(EveryWay, ReadsWhatTheModelSays) {
  for (int round = 0; round < rounds(); ++round) {
    const std::uint64_t seed = first_seed() + static_cast<std::uint64_t>(round);
    SCOPED_TRACE("SHIMA_SEED=" + std::to_string(seed));
    Random random(seed);
    check_read(random, scenario(random));
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ways, EveryWay,
    testing::Values(Way{"independent", std::nullopt, 1, true, false, false},
                    Way{"automatic", std::nullopt, 1, true, true, false},
                    Way{"pull", Path::pull, 1, true, true, false},
                    Way{"pack", Path::pack, 1, true, true, false},
                    Way{"message", Path::message, 2, false, true, false},
                    Way{"message_and_pull", Path::message, 3, true, true, false},
                    Way{"message_on_many_nodes", Path::message, 11, true, true, false},
                    Way{"independent_on_nodes", std::nullopt, 3, true, false, false},
                    Way{"independent_striped", std::nullopt, 1, true, false, true},
                    Way{"automatic_striped", std::nullopt, 1, true, true, true},
                    Way{"pull_striped", Path::pull, 1, true, true, true},
                    Way{"pack_striped", Path::pack, 1, true, true, true},
                    Way{"message_striped", Path::message, 2, false, true, true},
                    Way{"message_and_pull_striped", Path::message, 3, true, true, true},
                    Way{"one_space", std::nullopt, 1, true, true, false, true},
                    Way{"single_copy", Path::single_copy, 1, true, true, false, true},
                    Way{"pull_in_one_space", Path::pull, 1, true, true, false, true},
                    Way{"combined_in_one_space", std::nullopt, 1, true, false, false, true},
                    Way{"message_in_one_space", Path::message, 3, true, true, true, true},
                    Way{"single_copy_striped", Path::single_copy, 1, true, true, true, true}),
    [](const auto& way) { return std::string(way.param.name); });

Way by(const char* name, Strategy strategy, int nodes, bool striped) {
  return {name, std::nullopt, nodes, true, true, striped, false, strategy};
}

INSTANTIATE_TEST_SUITE_P(
    Strategies, EveryWay,
    testing::Values(by("independent", Strategy::independent, 1, false),
                    by("independent_on_nodes", Strategy::independent, 2, true),
                    by("disk_directed_on_nodes", Strategy::disk_directed, 3, true),
                    by("two_phase", Strategy::two_phase, 1, false),
                    by("two_phase_striped", Strategy::two_phase, 1, true),
                    by("two_phase_on_nodes", Strategy::two_phase, 3, false),
                    by("two_phase_on_nodes_striped", Strategy::two_phase, 3, true),
                    by("subgroup_on_nodes", Strategy::subgroup, 3, false),
                    by("subgroup_on_nodes_striped", Strategy::subgroup, 3, true)),
    [](const auto& way) { return std::string(way.param.name); });

}  // namespace
}  // namespace shima
