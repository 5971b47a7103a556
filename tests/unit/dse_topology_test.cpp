// Virtual topologies: neighbors and their names, texts, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "dse/plan/topology.h"

namespace shima::dse {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Topology topology(std::string_view text, int tasks = 0) {
  auto parsed = Topology::parse(text, tasks);
  EXPECT_TRUE(parsed) << describe(parsed.error());
  return *parsed;
}

std::string refusal(std::string_view text, int tasks = 0) {
  const auto parsed = Topology::parse(text, tasks);
  return parsed ? "accepted" : std::string(parsed.error().what);
}

TEST(DseTopology, RingNamesBothSides) {
  const Topology ring = topology("ring:5");
  EXPECT_EQ(ring.tasks(), 5);
  EXPECT_EQ(ring.neighbor(0, "left"), 4);
  EXPECT_EQ(ring.neighbor(4, "right"), 0);
  EXPECT_EQ(ring.neighbor(2, "dim0+"), 3);
  EXPECT_EQ(ring.neighbor(2, "east"), 3);
  EXPECT_EQ(ring.neighbor(2, "north"), std::nullopt);
  EXPECT_THAT(ring.neighbors(0), ElementsAre(Neighbor{"left", 4}, Neighbor{"right", 1}));
}

TEST(DseTopology, TorusIsRowByRow) {
  const Topology torus = topology("torus:4x2");
  EXPECT_EQ(torus.tasks(), 8);
  EXPECT_THAT(torus.coordinates(5), ElementsAre(2, 1));
  EXPECT_EQ(torus.neighbor(0, "north"), 6);
  EXPECT_EQ(torus.neighbor(0, "south"), 2);
  EXPECT_EQ(torus.neighbor(0, "west"), 1);
  EXPECT_EQ(torus.neighbor(0, "east"), 1);
  EXPECT_EQ(torus.neighbor(6, "dim0+"), 0);
  EXPECT_EQ(torus.neighbor(0, "dim2+"), std::nullopt);
  EXPECT_THAT(torus.neighbors(3), ElementsAre(Neighbor{"north", 1}, Neighbor{"south", 5},
                                              Neighbor{"west", 2}, Neighbor{"east", 2}));
}

TEST(DseTopology, MeshEndsAtItsEdges) {
  const Topology mesh = topology("mesh:2x3x2");
  EXPECT_EQ(mesh.neighbor(0, "down"), std::nullopt);
  EXPECT_EQ(mesh.neighbor(0, "up"), 6);
  EXPECT_EQ(mesh.neighbor(0, "south"), 2);
  EXPECT_EQ(mesh.neighbor(11, "east"), std::nullopt);
  EXPECT_THAT(mesh.neighbors(11),
              ElementsAre(Neighbor{"down", 5}, Neighbor{"north", 9}, Neighbor{"west", 10}));
  EXPECT_THAT(topology("mesh:2x2x2x2").neighbors(0),
              ElementsAre(Neighbor{"dim0+", 8}, Neighbor{"dim1+", 4}, Neighbor{"dim2+", 2},
                          Neighbor{"dim3+", 1}));
}

TEST(DseTopology, HypercubeFlipsBits) {
  const Topology cube = topology("hypercube", 8);
  EXPECT_THAT(cube.neighbors(5),
              ElementsAre(Neighbor{"dim0", 4}, Neighbor{"dim1", 7}, Neighbor{"dim2", 1}));
  EXPECT_EQ(cube.neighbor(5, "dim1"), 7);
  EXPECT_EQ(cube.neighbor(5, "dim3"), std::nullopt);
  EXPECT_EQ(cube.neighbor(5, "east"), std::nullopt);
  EXPECT_EQ(topology("hypercube:0").tasks(), 1);
}

// Whoever is my neighbor by a step has me by the opposite one.
TEST(DseTopology, OppositeStepsLeadBack) {
  const std::pair<const char*, const char*> opposites[] = {
      {"west", "east"}, {"north", "south"}, {"down", "up"}, {"dim0-", "dim0+"}, {"left", "right"}};
  for (const char* text :
       {"ring:1", "ring:7", "torus:3x4", "mesh:3x4", "torus:2x3x4", "mesh:1x5"}) {
    const Topology grid = topology(text);
    for (int task = 0; task < grid.tasks(); ++task)
      for (const auto& [one, other] : opposites)
        if (const auto neighbor = grid.neighbor(task, one)) {
          EXPECT_EQ(grid.neighbor(*neighbor, other), task) << text << " " << task << " " << one;
        }
  }
}

TEST(DseTopology, SizeComesFromTheTextOrTheJob) {
  EXPECT_EQ(topology("torus", 12).text(), "torus:4x3");
  EXPECT_EQ(topology("mesh", 7).text(), "mesh:7x1");
  EXPECT_EQ(topology("ring", 3).text(), "ring:3");
  EXPECT_THAT(refusal("torus"), HasSubstr("give their number by -n"));
  EXPECT_THAT(refusal("torus:4x2", 9), HasSubstr("it has 8 tasks, and the job 9"));
  EXPECT_THAT(refusal("hypercube", 6), HasSubstr("no power of two"));
}

TEST(DseTopology, RefusesWhatIsNone) {
  for (const char* text : {"", "tree:3", "ring:", "ring:0", "ring:-1", "ring:3x3", "torus:4y2",
                           "torus:4x", "torus:1048577", "mesh:2000x2000", "hypercube:21",
                           "hypercube:-1", "ring:9999999999", "graph:x"})
    EXPECT_NE(refusal(text), "accepted") << text;
}

TEST(DseTopology, GraphHasItsOwnNames) {
  const auto graph = Topology::parse_graph(
      "# a star\n0 a=1 b=2\n\n1 center=0  # back\n2 center=0; 3 home=3\n", 0, "star");
  ASSERT_TRUE(graph) << describe(graph.error());
  EXPECT_EQ(graph->tasks(), 4);
  EXPECT_EQ(graph->neighbor(0, "b"), 2);
  EXPECT_EQ(graph->neighbor(2, "center"), 0);
  EXPECT_EQ(graph->neighbor(2, "a"), std::nullopt);
  EXPECT_THAT(graph->neighbors(0), ElementsAre(Neighbor{"a", 1}, Neighbor{"b", 2}));
  EXPECT_EQ(graph->text(), "graph{0 a=1 b=2;1 center=0;2 center=0;3 home=3}");
}

TEST(DseTopology, GraphErrorsNameTheLine) {
  const auto why = [](std::string_view text, int tasks = 0) {
    const auto parsed = Topology::parse_graph(text, tasks, "g");
    return parsed ? "accepted" : std::string(parsed.error().what);
  };
  EXPECT_THAT(why("0 a=1\nx b=1\n"), HasSubstr("g, line 2: 'x' is no task's number"));
  EXPECT_THAT(why("0 a\n"), HasSubstr("g, line 1: 'a' is no neighbor"));
  EXPECT_THAT(why("0 =1\n"), HasSubstr("is no neighbor"));
  EXPECT_THAT(why("0 a=1 a=2"), HasSubstr("two neighbors named a"));
  EXPECT_THAT(why("0 a=8", 8), HasSubstr("names task 8; the job has tasks 0 to 7"));
  EXPECT_THAT(why("# nothing\n"), HasSubstr("has no task"));
}

TEST(DseTopology, TextMakesTheSameAgain) {
  std::mt19937 random(1);
  const auto below = [&](int limit) {
    return static_cast<int>(random() % static_cast<unsigned>(limit));
  };
  for (int round = 0; round < 50; ++round) {
    std::string text;
    for (int line = 0; line < 20; ++line) {
      text += std::to_string(below(30));
      for (int i = below(4); i > 0; --i)
        text +=
            " n" + std::to_string(line) + "." + std::to_string(i) + "=" + std::to_string(below(30));
      text += '\n';
    }
    const auto graph = Topology::parse_graph(text, 30, "random");
    ASSERT_TRUE(graph) << describe(graph.error());
    const Topology again = topology(graph->text(), 30);
    for (int task = 0; task < 30; ++task) EXPECT_EQ(again.neighbors(task), graph->neighbors(task));
  }
  for (const char* grid : {"ring:3", "mesh:3x1", "torus:2x2x2", "hypercube:4"})
    EXPECT_EQ(topology(grid).text(), grid);
}

}  // namespace
}  // namespace shima::dse
