// Simulated calls: what is counted agrees with a byte-by-byte model at small scale, and does not
// grow with the number of ranks at large scale.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdlib>
#include <map>
#include <new>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <string>

#include "pattern/cursor.h"
#include "simulate/limits.h"
#include "simulate/report.h"

namespace {

shima::simulate::Allocations counted;

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  void* const memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  ++counted.count;
  counted.bytes += ::malloc_usable_size(memory);
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  if (memory != nullptr) counted.freed_bytes += ::malloc_usable_size(memory);
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  operator delete(memory);
}

namespace shima::simulate {
namespace {

const Meter meter([] { return counted; });
constexpr std::array shapes{Shape::columns, Shape::blocks, Shape::irregular, Shape::one_rank};

Workload small(Shape shape, int ranks, int ranks_per_node) {
  Workload workload;
  workload.shape = shape;
  workload.ranks = ranks;
  workload.ranks_per_node = ranks_per_node;
  workload.cores_per_node = 2;
  workload.bytes_per_rank = 40000;
  workload.piece_bytes = 1000;
  return workload;
}

// Calls visit(offset) for each byte of a rank.
template <class Visit>
void for_each_byte(const Post& post, Visit visit) {
  if (post.len_bytes == 0) return;
  Cursor cursor(post.file);
  for_each_strip_below(cursor, post.bounds.highest, [&](const Strip& strip) {
    for (std::uint64_t i = 0; i < strip.count; ++i)
      for (std::uint64_t byte = 0; byte < strip.len_bytes; ++byte)
        visit(strip.offset + as_signed(i) * strip.stride_bytes + as_signed(byte));
  });
}

TEST(Simulate, RanksShareNoBytes) {
  for (const Shape shape : shapes) {
    SCOPED_TRACE(std::string(name_of(shape)));
    const Workload workload = small(shape, 7, 3);
    std::map<std::int64_t, int> owners;
    for (int rank = 0; rank < workload.ranks; ++rank) {
      const Post post = post_of(workload, rank);
      EXPECT_TRUE(post.ordered);
      for_each_byte(post,
                    [&](std::int64_t at) { EXPECT_TRUE(owners.emplace(at, rank).second) << at; });
    }
    EXPECT_FALSE(owners.empty());
    if (shape == Shape::one_rank) continue;
    EXPECT_EQ(owners.begin()->first, 0);
    EXPECT_EQ(owners.rbegin()->first + 1, static_cast<std::int64_t>(owners.size()));
  }
}

Digest random_digest(std::mt19937_64& random) {
  const auto low = static_cast<std::int64_t>(random() % 1000);
  return {.member_count = random() % 3,
          .len_bytes = random() % 10000,
          .most_file_pieces = random() % 100,
          .granule_bytes = random() % 64 * 8,
          .bounds = {low, low + static_cast<std::int64_t>(random() % 1000)},
          .ordered = static_cast<std::uint32_t>(random() % 2)};
}

TEST(Simulate, RoundsJoinTheDigestsOfAllNodes) {
  std::mt19937_64 random(3);
  for (int nodes = 1; nodes < 40; ++nodes) {
    std::vector<Digest> digests;
    for (int node = 0; node < nodes; ++node) digests.push_back(random_digest(random));
    const Digest all = joined(digests);
    const auto results = joined_in_rounds(digests);
    ASSERT_EQ(results.size(), digests.size());
    for (const Digest& result : results) EXPECT_EQ(std::memcmp(&result, &all, sizeof all), 0);
    for (int node = 0; node < nodes; ++node)
      EXPECT_LE(1 << std::max(0, messages_in_rounds(node, nodes) - 1), std::max(1, nodes));
  }
}

const std::array tunings{
    Tuning{.strategy = Strategy::subgroup, .window_bytes = 16384},
    Tuning{.strategy = Strategy::subgroup, .max_agents = 4, .subgroup_members = 2},
    Tuning{.strategy = Strategy::disk_directed, .max_agents = 2, .window_bytes = 4096},
    Tuning{.strategy = Strategy::two_phase, .max_agents = 7},
    Tuning{.strategy = Strategy::two_phase},
};

// The sums over all agents are those over all masters, and all bytes of the call.
TEST(Simulate, AgentsGetWhatMastersSend) {
  for (const Shape shape : shapes) {
    for (const Tuning& tuning : tunings) {
      SCOPED_TRACE(fmt::format("{}, {} {}", name_of(shape), name_of(*tuning.strategy),
                               tuning.subgroup_members));
      Workload workload = small(shape, 23, 5);
      workload.subfiles = tuning.max_agents == 0 ? 1 : 3;
      workload.unit_bytes = 10000;
      workload.tuning = tuning;
      const Job job(workload);
      ASSERT_EQ(job.plan().path, Path::message);
      std::vector<int> agents(static_cast<std::size_t>(job.plan().agents.count()));
      std::iota(agents.begin(), agents.end(), 0);
      AgentCounts received;
      const auto surveyed = survey_agents(job, agents).value();
      for (const AgentCounts& agent : surveyed) {
        received.messages += agent.messages;
        received.near_bytes += agent.near_bytes;
        received.far_bytes += agent.far_bytes;
        EXPECT_LE(agent.most_in_a_window, agent.subgroups);
        EXPECT_GE(agent.visits, std::max(agent.windows, agent.messages));
        EXPECT_LE(agent.visits, agent.windows * static_cast<std::uint64_t>(workload.ranks));
      }
      EXPECT_EQ(received.near_bytes + received.far_bytes, job.digest().len_bytes);
      MasterCounts sent;
      const Subgroups subgroups(job.topology(), job.plan().subgroup_members);
      for (int rank = 0; rank < workload.ranks; ++rank) {
        if (!subgroups.is_master(rank)) continue;
        const auto master = survey_master(job, rank, meter).value();
        sent.messages += master.messages;
        sent.bytes += master.bytes;
      }
      EXPECT_EQ(sent.messages, received.messages);
      EXPECT_EQ(sent.bytes, received.far_bytes);
    }
  }
}

Scale scale_with(Shape shape, int ranks, bool round_robin) {
  Workload workload;
  workload.shape = shape;
  workload.ranks = ranks;
  workload.round_robin = round_robin;
  workload.bytes_per_rank = 65536;
  return measure_scale(workload, {}, {.count = 3}, meter).value();
}

TEST(Simulate, PlanningDoesNotGrowWithRanks) {
  for (const Shape shape : shapes) {
    for (const bool round_robin : {false, true}) {
      SCOPED_TRACE(std::string(name_of(shape)) + (round_robin ? ", round robin" : ", blocks"));
      const Figures few = figures_of(scale_with(shape, 512, round_robin));
      const Figures many = figures_of(scale_with(shape, 32768, round_robin));
      EXPECT_EQ(many.member_allocations, few.member_allocations);
      EXPECT_LE(many.member_bytes, 1.5 * few.member_bytes);
      EXPECT_EQ(many.topology_bytes, few.topology_bytes);
      EXPECT_EQ(few.leader_messages, 2);
      EXPECT_EQ(many.leader_messages, 16);
      EXPECT_EQ(many.requests, many.requests_needed);
      EXPECT_EQ(many.window_excess, 0);
    }
  }
}

TEST(Simulate, APlacementWithoutOrderIsListed) {
  std::mt19937_64 random(5);
  std::vector<Member> members(10000);
  for (Member& member : members) member.node = static_cast<int>(random() % 40);
  members.front().node = 0;
  const Cost cost = meter.once([&] { EXPECT_EQ(Topology(members).size(), 10000); });
  EXPECT_GT(cost.allocated_bytes, members.size() * 12);
  EXPECT_EQ(cost.kept_bytes, 0);
}

TEST(Simulate, RegularPiecesCostNothing) {
  for (const Shape shape : {Shape::columns, Shape::one_rank}) {
    Request request;
    request.ranks = {1024};
    request.workload.shape = shape;
    const PiecesProbe probe = probe_pieces(request, meter);
    EXPECT_EQ(probe.many, 64 * probe.few);
    EXPECT_EQ(probe.cost_many.allocations, probe.cost_few.allocations);
    EXPECT_EQ(probe.post_bytes_many, probe.post_bytes_few);
  }
}

TEST(Simulate, TheOneRankWithBytesIsTheOneThatIsModelled) {
  Workload workload;
  workload.ranks = 4;
  workload.shape = Shape::one_rank;
  const auto scale = measure_scale(workload, {}, {}, meter);
  ASSERT_TRUE(scale.has_value());
  EXPECT_EQ(scale->traffic.members, 1);
  EXPECT_GE(scale->traffic.span_bytes, scale->traffic.bytes);
}

TEST(Simulate, BadWorkloadsAreRefused) {
  Workload workload;
  EXPECT_TRUE(check(workload).has_value());
  workload.piece_bytes = 0;
  EXPECT_FALSE(check(workload).has_value());
  workload.piece_bytes = 2 * workload.bytes_per_rank;
  EXPECT_FALSE(check(workload).has_value());
  workload = {};
  workload.ranks = 1 << 24;
  workload.bytes_per_rank = std::uint64_t{1} << 40;
  EXPECT_FALSE(check(workload).has_value());
  EXPECT_FALSE(measure_scale(workload, {}, {}, meter).has_value());
}

// No cost but rates of 1000 MB/s.
Machine only_rates() {
  Machine machine;
  for (const MachineField& field : machine_fields) machine.*field.value = 0;
  for (auto rate :
       {&Machine::copy_mb_s, &Machine::wire_mb_s, &Machine::disk_mb_s, &Machine::cache_mb_s})
    machine.*rate = 1000;
  machine.memory_mb_s = 1000;
  machine.processor_cache_mb = 1e6;
  machine.segment_kb = 1000;
  return machine;
}

// 1000 MB at 1000 MB/s for each of copying, link and disk; one byte in two crosses.
TEST(Model, AddsUpByHand) {
  Machine machine = only_rates();
  machine.round_us = 20;
  machine.meeting_us = 100;
  machine.turn_us = 50;
  Traffic traffic{.pulled = true,
                  .ranks = 16,
                  .nodes = 4,
                  .cores_per_node = 2,
                  .agents = 4,
                  .bytes = 1000'000'000,
                  .far_share = 0.5,
                  .messages = 4 * 10,
                  .windows = 1000,
                  .window_bytes = 1'000'000};
  const Estimate made = estimate(traffic, machine);
  EXPECT_DOUBLE_EQ(made.meetings_s, 2 * 2 * (50 + 2 * 20) * 1e-6);
  EXPECT_DOUBLE_EQ(made.processors_s, 2.0 / 8);  // 1 + 0.5 * 2 copies on 8 cores
  EXPECT_DOUBLE_EQ(made.wire_s, 0.5 / 4);
  EXPECT_DOUBLE_EQ(made.disk_s, 1.0 + 2.0 / 1000);
  // Each of an agent's messages waits for two members on a core.
  EXPECT_DOUBLE_EQ(made.messages_s, 10 * 2 * 20e-6 + 0.003 + 0.001);
  EXPECT_DOUBLE_EQ(made.seconds, made.meetings_s + made.disk_s + made.messages_s);
  // On a core of its own, only grant and bytes are waited for, which arrive in two steps.
  traffic.ranks = 8;
  EXPECT_DOUBLE_EQ(estimate(traffic, machine).messages_s, 3 * 20e-6 + 0.003 + 0.001);
  // With half of the cores shared, half of the others are waited for, too.
  traffic.ranks = 12;
  EXPECT_DOUBLE_EQ(estimate(traffic, machine).messages_s,
                   (3 + 0.5 * 7) * 1.5 * 20e-6 + 0.003 + 0.001);
  // A read's places come before its bytes. Few large messages arrive in as many steps as before.
  traffic.is_read = true;
  traffic.messages = 4 * 3;
  EXPECT_DOUBLE_EQ(estimate(traffic, machine).messages_s, 4 * 1.5 * 20e-6 + 0.003 + 0.001);
}

// Costs of pieces, visits and messages are work of the processors.
TEST(Model, CountsWhatIsDoneOften) {
  Machine machine = only_rates();
  machine.piece_ns = 10;
  machine.list_piece_ns = 100;
  machine.far_list_piece_ns = 300;
  machine.visit_us = 1;
  machine.message_us = 10;
  machine.crowding = 0.5;  // four members share a core
  machine.io_us = 2;
  machine.shared_cores = 2;
  Traffic traffic{.is_read = true,
                  .cached = true,
                  .ranks = 8,
                  .nodes = 2,
                  .pieces = 10'000,
                  .far_share = 0.5,
                  .messages = 20,
                  .windows = 5,
                  .visits = 30};
  EXPECT_DOUBLE_EQ(estimate(traffic, machine).processors_s, 2.5 * (150 + 30 + 200 + 10) * 1e-6 / 2);
  traffic.listed = true;
  EXPECT_DOUBLE_EQ(estimate(traffic, machine).processors_s,
                   2.5 * (2500 + 30 + 200 + 10) * 1e-6 / 2);
}

// An agent has ten windows, which four members on two cores fill; or it pulls.
TEST(Model, WindowsGoToMembersAndBack) {
  Machine machine = only_rates();
  machine.turn_us = 10;
  machine.hand_us = 30;
  Traffic traffic{.ranks = 4, .cores_per_node = 2, .agents = 1, .windows = 10};
  const double meetings_s = 2 * 2 * 10e-6;
  EXPECT_DOUBLE_EQ(estimate(traffic, machine).seconds, meetings_s + 10 * 30e-6 / 2);
  traffic.pulled = true;
  EXPECT_DOUBLE_EQ(estimate(traffic, machine).seconds, meetings_s);
}

// Two ranks write 5000 pieces each of 100 MB in all.
Traffic small_writes() {
  return {.independent = true,
          .ranks = 2,
          .members = 2,
          .cores_per_node = 2,
          .bytes = 100'000'000,
          .pieces = 10'000,
          .span_bytes = 5'000 * 1024};
}

TEST(Model, SmallWritesThatLieCloseGoThroughAMapping) {
  Machine machine = only_rates();
  machine.io_us = 1;
  machine.mapped_piece_ns = 100;
  const double mapped_s = (0.1 + 10'000 * 100e-9 + 2 * 1e-6) / 2;
  Traffic traffic = small_writes();
  EXPECT_DOUBLE_EQ(estimate(traffic, machine).processors_s, mapped_s);
  traffic.nodes = 2;
  machine.shared_cores = 2;  // namespaces
  EXPECT_DOUBLE_EQ(estimate(traffic, machine).processors_s, mapped_s);
}

TEST(Model, OtherWritesHaveACallEach) {
  Machine machine = only_rates();
  machine.io_us = 1;
  const double called_s = 0.1 + 10'000 * 1e-6;
  Traffic apart = small_writes();
  apart.span_bytes = 5'000 * 2048;
  EXPECT_DOUBLE_EQ(estimate(apart, machine).disk_s, called_s);
  Traffic far = small_writes();
  far.nodes = 2;  // machines, with a network's file system
  EXPECT_DOUBLE_EQ(estimate(far, machine).disk_s, called_s);
  Traffic few = small_writes();
  few.pieces = 14;
  few.span_bytes = 1024;
  EXPECT_DOUBLE_EQ(estimate(few, machine).disk_s, 0.1 + 14 * 1e-6);
}

TEST(Model, SmallWritesOfMembersThatShareACoreTakeLonger) {
  Machine machine = only_rates();
  machine.io_us = 1;
  machine.crowding = 0.5;
  Traffic traffic = small_writes();
  traffic.span_bytes = 5'000 * 20'480;
  traffic.ranks = traffic.members = 4;  // two on each core
  EXPECT_DOUBLE_EQ(estimate(traffic, machine).disk_s, 1.5 * (0.1 + 10'000 * 1e-6));
  traffic.members = 1;  // no other writer
  EXPECT_DOUBLE_EQ(estimate(traffic, machine).disk_s, 0.1 + 10'000 * 1e-6);
  traffic.members = 4;
  traffic.bytes = 1'600 * 65'536;
  traffic.pieces = 1'600;
  EXPECT_DOUBLE_EQ(estimate(traffic, machine).disk_s, 1.5 * (0.1048576 + 1'600 * 1e-6));
  traffic.bytes += 1'600;
  EXPECT_DOUBLE_EQ(estimate(traffic, machine).disk_s, 0.1048592 + 1'600 * 1e-6);
}

// Two ranks on two cores read 100 pieces each of 1000 MB in all, which lie in 2000 MB.
TEST(Model, ReadsOfCachedBytesAreWorkOfTheProcessors) {
  Machine machine = only_rates();
  machine.io_us = 1000;
  Traffic traffic{.independent = true,
                  .is_read = true,
                  .cached = true,
                  .ranks = 2,
                  .members = 2,
                  .cores_per_node = 2,
                  .bytes = 1000'000'000,
                  .pieces = 200,
                  .span_bytes = 2000'000'000,
                  .window_bytes = 1'000'000};
  EXPECT_DOUBLE_EQ(estimate(traffic, machine).seconds, (1.0 + 200 * 1e-3) / 2);
  EXPECT_DOUBLE_EQ(estimate(traffic, machine).disk_s, 0);
  traffic.pieces = 2'000'000;  // so close that each rank reads all of it, and copies its pieces
  const double reads = 2 * 2000'000'000.0 / (1 << 20);
  EXPECT_DOUBLE_EQ(estimate(traffic, machine).seconds, (4.0 + 1.0 + reads * 1e-3) / 2);
  traffic.listed = true;
  machine.sieved_piece_ns = 500;
  EXPECT_DOUBLE_EQ(estimate(traffic, machine).seconds, (4.0 + 1.0 + 1.0 + reads * 1e-3) / 2);
}

// 100 MB of the program and 100 MB of the page cache: a cache of 50 MB holds a quarter.
TEST(Model, BytesThatNoCacheHoldsComeFromMemory) {
  Machine machine = only_rates();
  const Traffic traffic{.independent = true, .bytes = 100'000'000};
  EXPECT_DOUBLE_EQ(estimate(traffic, machine).disk_s, 0.1);
  machine.processor_cache_mb = 50;
  EXPECT_DOUBLE_EQ(estimate(traffic, machine).disk_s, 0.1 + 0.075);
}

TEST(Model, NamespacesOfOneMachineShareItsCores) {
  Machine machine;
  const Traffic traffic{.nodes = 4,
                        .cores_per_node = 2,
                        .agents = 4,
                        .bytes = 1000'000'000,
                        .pieces = 1000,
                        .far_share = 0.75,
                        .window_bytes = 1'000'000};
  const double apart_s = estimate(traffic, machine).seconds;
  machine.shared_cores = 2;
  EXPECT_GT(estimate(traffic, machine).seconds, apart_s);
  Traffic own = traffic;
  own.independent = true;
  own.far_share = 0;
  EXPECT_EQ(estimate(own, machine).wire_s, 0);
}

TEST(Report, IsReadable) {
  Request request;
  request.ranks = {4, 64};
  request.workload.ranks_per_node = 4;
  const Report report = simulate(request, meter).value();
  const auto parsed = nlohmann::json::parse(as_json(report));
  ASSERT_EQ(parsed.at("scales").size(), 2U);
  EXPECT_EQ(parsed.at("scales")[1].at("nodes"), 16);
  EXPECT_EQ(parsed.at("limits").size(), report.limits.size());
  EXPECT_NE(as_html(report).find("</html>"), std::string::npos);
  EXPECT_NE(as_text(report).find("ranks"), std::string::npos);
}

}  // namespace
}  // namespace shima::simulate
