// TIMEOUT: 300
// Collective calls of the real code over many nodes whose members are threads: bytes, messages and
// the cost of planning.
//
// The messages between nodes are in memory (post_office.h), so all of them are counted. SHIMA_NODES
// and SHIMA_MEMBERS set the larger scale, which is compared with 4 nodes; with more than 8,
// subgroups send requests only to the agents that they touch.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <new>
#include <set>

#include "collective/run.h"
#include "many_nodes.h"
#include "member_call.h"
#include "members.h"

namespace {

// Of one thread.
struct Heap {
  std::uint64_t allocations = 0;
  std::uint64_t len_bytes = 0;
};
thread_local Heap heap;

}  // namespace

// Out of the compiler's sight: it would take the pair for a mismatch of new and free.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++heap.allocations;
  heap.len_bytes += size;
  if (void* const memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace shima {

std::atomic<std::uint64_t> stand_in_waits{0};

// In place of those of base/futex.cpp. Waits are 100 times as long, so that thousands of threads
// that wait leave the processors to the others: these rely on wake-ups.
bool futex_wait(const FutexWord& word, std::uint32_t expected, std::uint32_t timeout_us,
                WaiterBits as) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(timeout_us) * 100;
  const auto end_s = std::chrono::floor<std::chrono::seconds>(end.time_since_epoch());
  const timespec timeout{
      .tv_sec = end_s.count(),
      .tv_nsec = std::chrono::nanoseconds(end.time_since_epoch() - end_s).count()};
  ++stand_in_waits;
  return syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, expected, &timeout, nullptr, as) == 0 ||
         errno != ETIMEDOUT;
}
void futex_wake(const FutexWord& word, int count, WaiterBits which) {
  syscall(SYS_futex, &word, FUTEX_WAKE_BITSET, count, nullptr, nullptr, which);
}

namespace {

using namespace test;

constexpr std::uint64_t calls = 2;  // a write and a read

int from_environment(const char* name, int otherwise) {
  const char* wanted = std::getenv(name);
  return wanted != nullptr ? static_cast<int>(std::strtol(wanted, nullptr, 10)) : otherwise;
}

// What one member needed for its calls.
struct Cost {
  std::uint64_t planning_bytes = 0;  // descriptions, memory allocated in start(), short messages
  std::uint64_t planning_allocations = 0;
  std::uint64_t allocations = 0;  // in whole calls
};

// Over all members; "plain" ones are neither agents nor masters.
struct Costs {
  double mean_bytes = 0;  // of planning
  std::uint64_t most_bytes = 0;
  std::uint64_t most_bytes_of_plain = 0;
  double mean_allocations = 0;                  // in planning
  std::uint64_t most_allocations_of_plain = 0;  // in whole calls
  std::uint64_t most_requests = 0;              // of one member
};

class ManyNodes : public testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::temp_directory_path() / ("shima_many_" + std::to_string(::getpid()));
    file_ = std::make_unique<LogicalFile>(
        LogicalFile::open({.path = path_, .read = true, .write = true, .create = true}).value());
  }
  void TearDown() override { std::filesystem::remove(path_); }

  // Writes or reads all bytes of a member.
  void move(Direction direction, Channel& channel, const Pattern& pattern, Cost& cost) {
    std::vector<std::byte> buffer(pattern.len_bytes());
    const auto address = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(buffer.data()));
    const Post post = make_post({pattern, 0, 0, buffer.size()},
                                {Pattern::contiguous(buffer.size()), address, 0, buffer.size()});
    std::vector<std::byte> expected;
    for_each_byte(post.file, [&](std::int64_t at) { expected.push_back(value_at(at)); });
    if (direction == Direction::write) buffer = expected;
    PostWriter writer;
    cost.planning_bytes += writer.message_of(post).size() + writer.len_bytes() + sizeof(Digest);
    MemberCall mine({.strategy = Strategy::subgroup,
                     .max_agents = agents_of_node * channel.topology().node_count(),
                     .window_bytes = window_bytes});
    const CollectiveCall call = mine.on(*file_, channel, direction);
    const Heap before = heap;
    CollectiveTransfer transfer(call);
    ASSERT_TRUE(transfer.start(MemberAccess{post, digest_of(post)}).has_value());
    cost.planning_bytes += heap.len_bytes - before.len_bytes;
    cost.planning_allocations += heap.allocations - before.allocations;
    const auto moved = transfer.finish(0);
    ASSERT_TRUE(moved.has_value()) << describe(moved.error());
    cost.allocations += heap.allocations - before.allocations;
    EXPECT_TRUE(buffer == expected) << "rank " << channel.rank();
  }

  // Every byte that a pattern has, and no other.
  void check_file(std::span<const Pattern> patterns, const Scale& scale) {
    std::vector<std::byte> expected(static_cast<std::size_t>(scale.file_bytes()));
    for (const Pattern& pattern : patterns)
      for_each_byte({pattern, 0, 0, pattern.len_bytes()}, [&](std::int64_t at) {
        expected[static_cast<std::size_t>(at)] = value_at(at);
      });
    std::vector<std::byte> found(expected.size());
    ASSERT_EQ(file_->size().value().value, scale.file_bytes());
    EXPECT_EQ(file_->read(FileOffset{0}, found.data(), found.size()).value(), found.size());
    EXPECT_TRUE(found == expected);
  }

  // One message for each window in which a node has bytes, in each direction that it needs.
  static void check_window_messages(PostOffice& messages, std::span<const Pattern> patterns,
                                    const Topology& topology) {
    std::map<std::pair<int, int>, std::set<std::int64_t>> windows;  // by node and agent's node
    for (int rank = 0; rank < topology.size(); ++rank)
      for_each_byte(
          {patterns[static_cast<std::size_t>(rank)], 0, 0,
           patterns[static_cast<std::size_t>(rank)].len_bytes()},
          [&](std::int64_t at) {
            const auto agent_node = static_cast<int>(at / domain_bytes / agents_of_node);
            windows[{topology.node_of(rank), agent_node}].insert(at / std::int64_t{window_bytes});
          });
    std::map<std::pair<int, int>, std::uint64_t> expected;
    for (const auto& [nodes, touched] : windows)
      if (nodes.first != nodes.second) expected[nodes] = touched.size();
    const auto messages_in = [&](Lane lane, bool to_agent) {
      std::map<std::pair<int, int>, std::uint64_t> sent;
      for (const auto& [pair, all] : messages.traffic(lane)) {
        const int from = topology.node_of(pair.first);
        const int to = topology.node_of(pair.second);
        sent[to_agent ? std::pair(from, to) : std::pair(to, from)] += all.messages;
      }
      return sent;
    };
    EXPECT_EQ(messages_in(Lane::reply, false), expected);  // of the read
    for (auto& [nodes, count] : expected) count *= calls;
    EXPECT_EQ(messages_in(Lane::to_agent, true), expected);
    EXPECT_EQ(messages_in(Lane::grant, false), expected);
  }

  // Writes and reads all bytes.
  Costs costs_of(Shape shape, const Scale& scale) {
    const World world{.members = scale.ranks(),
                      .cores = agents_of_node,
                      .nodes = scale.nodes,
                      .watches_peers = false};
    EXPECT_TRUE(file_->truncate(FileOffset{0}).has_value());
    std::vector<Pattern> patterns;
    for (int rank = 0; rank < scale.ranks(); ++rank)
      patterns.push_back(pattern_of(shape, rank, scale));
    std::vector<Cost> costs(patterns.size());
    WorldGround ground(world);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < world.members; ++rank)
      threads.emplace_back([&, rank] {
        const auto at = static_cast<std::size_t>(rank);
        ground.run_member(rank, [&](std::unique_ptr<Channel> channel) {
          move(Direction::write, *channel, patterns[at], costs[at]);
          move(Direction::read, *channel, patterns[at], costs[at]);
        });
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(ground.network.messages.is_empty());
    check_file(patterns, scale);
    check_window_messages(ground.network.messages, patterns, ground.topology);
    return sum_of(costs, ground);
  }

  static void add_sent(const Traffic& traffic, std::vector<Cost>& costs) {
    for (const auto& [pair, sent] : traffic)
      costs[static_cast<std::size_t>(pair.first)].planning_bytes += sent.len_bytes;
  }

  static Costs sum_of(std::vector<Cost>& costs, WorldGround& ground) {
    PostOffice& messages = ground.network.messages;
    add_sent(ground.network.between_leaders.traffic(), costs);
    for (const Lane lane : {Lane::leaders, Lane::request, Lane::grant})
      add_sent(messages.traffic(lane), costs);
    Costs sum;
    std::map<int, std::uint64_t> requests;
    for (const auto& [pair, sent] : messages.traffic(Lane::request))
      sum.most_requests = std::max(sum.most_requests, requests[pair.first] += sent.messages);
    const Subgroups subgroups(ground.topology, 0);
    const int ranks = ground.topology.size();
    for (int rank = 0; rank < ranks; ++rank) {
      const Cost& cost = costs[static_cast<std::size_t>(rank)];
      sum.mean_bytes += static_cast<double>(cost.planning_bytes) / ranks;
      sum.mean_allocations += static_cast<double>(cost.planning_allocations) / ranks;
      sum.most_bytes = std::max(sum.most_bytes, cost.planning_bytes);
      if (subgroups.is_master(rank)) continue;  // also an agent
      sum.most_bytes_of_plain = std::max(sum.most_bytes_of_plain, cost.planning_bytes);
      sum.most_allocations_of_plain = std::max(sum.most_allocations_of_plain, cost.allocations);
    }
    return sum;
  }

  static void print(const Scale& scale, const Costs& costs) {
    fmt::print(
        "{} x {}: planning: {:.0f} bytes and {:.1f} allocations a rank, at most {} bytes, {} of a "
        "plain "
        "rank; whole calls: at most {} allocations of a plain rank, {} requests of a rank\n",
        scale.nodes, scale.members, costs.mean_bytes, costs.mean_allocations, costs.most_bytes,
        costs.most_bytes_of_plain, costs.most_allocations_of_plain, costs.most_requests);
  }

  void compare(Shape shape) {
    const Scale large{from_environment("SHIMA_NODES", 16), from_environment("SHIMA_MEMBERS", 8)};
    const Scale small{4, large.members};
    const Costs few = costs_of(shape, small);
    const Costs many = costs_of(shape, large);
    print(small, few);
    print(large, many);
    EXPECT_GT(stand_in_waits, 0U);
    EXPECT_LE(many.mean_bytes, 2 * few.mean_bytes);
    EXPECT_LE(many.most_bytes, 2 * few.most_bytes);
    EXPECT_LE(many.most_bytes_of_plain, few.most_bytes_of_plain * 11 / 10);
    EXPECT_LE(many.mean_allocations, 1.1 * few.mean_allocations);
    if (shape == Shape::everywhere) return;
    // Each member moves as many bytes through as many windows.
    EXPECT_LE(many.most_allocations_of_plain, few.most_allocations_of_plain);
    EXPECT_LE(many.most_requests, calls);  // each master serves one agent
  }

  std::string path_;
  std::unique_ptr<LogicalFile> file_;
};

TEST_F(ManyNodes, Columns) { compare(Shape::columns); }
TEST_F(ManyNodes, IrregularPieces) { compare(Shape::irregular); }
TEST_F(ManyNodes, ColumnsThroughAllDomains) { compare(Shape::everywhere); }

}  // namespace
}  // namespace shima
