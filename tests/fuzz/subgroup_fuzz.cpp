// Damaged answers of an agent to a subgroup master: the master ends, with an error or without, and
// changes no byte outside its members' pieces.
//
// The agent is a Messenger in the master's thread that answers each message at once. It damages
// some of its grants and replies, or none of a call: then all bytes must arrive. SHIMA_FUZZ_ROUNDS
// sets the number of rounds, SHIMA_SEED the first.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <limits>
#include <map>

#include "collective/subgroup_master.h"
#include "unit/members.h"
#include "unit/situation.h"

namespace shima {
namespace {

using test::pick;
using test::Random;

constexpr auto background = std::byte{0xAA};
constexpr std::int64_t highest = std::numeric_limits<std::int64_t>::max();

std::byte value_at(std::int64_t offset) {
  return static_cast<std::byte>((static_cast<std::uint64_t>(offset) * 0x9e3779b97f4a7c15U) >> 56 |
                                1);
}

std::int64_t some_number(Random& random) {
  const auto small = static_cast<std::int64_t>(pick(random, 0, 100'000));
  return std::array<std::int64_t, 4>{small, -small, highest - small,
                                     static_cast<std::int64_t>(random())}[pick(random, 0, 3)];
}

// An agent of a plain file, in which target offsets are file offsets.
class DamagingAgent final : public Messenger {
 public:
  DamagingAgent(const Plan& plan, std::int64_t file_bytes, Random& random)
      : plan_(plan),
        domains_(plan.agents.domains_of(0)),
        file_bytes_(file_bytes),
        random_(random),
        damage_one_in_(std::array<std::uint64_t, 4>{0, 1, 4, 20}[pick(random, 0, 3)]) {}

  [[nodiscard]] bool has_damaged() const { return has_damaged_; }
  [[nodiscard]] std::uint64_t bytes_written() const { return bytes_written_; }

  Result<Ticket> send(int, Lane lane, MessageBuffer message) override {
    std::span<const std::byte> in = message.bytes();
    if (lane == Lane::request) {
      const WindowRequest request = take_from<WindowRequest>(in).value();
      announce(request.first);
      announce(request.second);
    } else {
      take_window(in);
    }
    return keep(lane, std::move(message));
  }
  Result<Ticket> receive(int, Lane lane, MessageBuffer buffer) override {
    return keep(lane, std::move(buffer));
  }
  Result<std::optional<int>> sender(Lane) override { return std::nullopt; }
  Result<std::optional<MessageBuffer>> done(Ticket ticket) override {
    auto found = pending_.extract(ticket);
    auto& [lane, message] = found.mapped();
    if (lane == Lane::grant) answer(message, grant());
    if (lane == Lane::reply) answer(message, reply());
    return std::optional(std::move(message));
  }
  std::chrono::nanoseconds pause() override { return {}; }
  void moved() override {}

 private:
  struct Pending {
    Lane lane{};
    MessageBuffer message;
  };
  struct Asked {
    WindowId id;
    Coverage runs;
  };

  Ticket keep(Lane lane, MessageBuffer message) {
    pending_.emplace(next_, Pending{lane, std::move(message)});
    return next_++;
  }
  void announce(const WindowId& id) {
    if (!id.none()) announced_.push_back(id);
  }

  // The runs that the master wants, or has with their bytes.
  void take_window(std::span<const std::byte> in) {
    const WindowHead head = take_from<WindowHead>(in).value();
    announce(head.ahead);
    const Window window = window_of(head.window, domains_, plan_.window_bytes).value();
    Coverage runs;
    runs.reset(window.range, plan_.granule_bytes);
    EXPECT_TRUE(take_runs(in, runs).has_value());
    if (in.empty()) return asked_.push_back({head.window, std::move(runs)});
    const auto written = runs_in(runs, in);
    ASSERT_TRUE(written.has_value());
    for (const RunBytes& run : *written) {
      for (std::uint64_t i = 0; i < run.range.len_bytes(); ++i)
        ASSERT_EQ(run.data[i], value_at(run.range.begin.value + as_signed(i)));
      bytes_written_ += run.range.len_bytes();
    }
  }

  std::vector<std::byte> grant() {
    std::vector<std::byte> bytes(sizeof(WindowGrant));
    std::span<std::byte> out = bytes;
    put_into(out, WindowGrant{announced_.front()});
    announced_.pop_front();
    return bytes;
  }

  std::vector<std::byte> reply() {
    const Asked asked = std::move(asked_.front());
    asked_.pop_front();
    const TargetRange range = asked.runs.window();
    // A wrong end of the file, which the bytes fit.
    const std::int64_t file_bytes =
        is_unlucky() ? range.begin.value + as_signed(pick(random_, 0, range.len_bytes()))
                     : file_bytes_;
    const TargetOffset end{std::clamp(file_bytes, range.begin.value, range.end.value)};
    std::vector<std::byte> image(range.len_bytes());
    for (std::size_t i = 0; i < image.size(); ++i)
      image[i] = value_at(range.begin.value + static_cast<std::int64_t>(i));
    std::vector<std::byte> bytes(sizeof(ReplyHead) + asked.runs.len_bytes());
    std::span<std::byte> out = bytes;
    put_into(out, ReplyHead{asked.id, end.value, end < range.end ? file_bytes : highest});
    bytes.resize(sizeof(ReplyHead) + pack_runs(asked.runs, end, image.data(), out));
    return bytes;
  }

  bool is_unlucky() {
    const bool is = damage_one_in_ != 0 && pick(random_, 1, damage_one_in_) == 1;
    has_damaged_ = has_damaged_ || is;
    return is;
  }
  void damage(std::vector<std::byte>& bytes) {
    const std::size_t words = std::min(bytes.size(), sizeof(ReplyHead)) / sizeof(std::int64_t);
    const std::int64_t word = some_number(random_);
    switch (pick(random_, 0, 3)) {
      case 0:
        bytes.resize(pick(random_, 0, bytes.size() + 8));
        break;
      case 1:
        bytes[pick(random_, 0, bytes.size() - 1)] ^= std::byte{1} << pick(random_, 0, 7);
        break;
      default:
        std::memcpy(bytes.data() + pick(random_, 0, words - 1) * sizeof word, &word, sizeof word);
    }
  }
  void answer(MessageBuffer& message, std::vector<std::byte> bytes) {
    if (is_unlucky()) damage(bytes);
    bytes.resize(std::min(bytes.size(), message.capacity_bytes()));
    message.set_len_bytes(bytes.size());
    std::ranges::copy(bytes, message.bytes().begin());
  }

  const Plan& plan_;
  std::vector<Domain> domains_;
  std::int64_t file_bytes_;
  Random& random_;
  std::uint64_t damage_one_in_;  // of the answers; 0: none
  bool has_damaged_ = false;
  std::uint64_t bytes_written_ = 0;
  std::map<Ticket, Pending> pending_;
  Ticket next_ = 1;
  std::deque<WindowId> announced_;
  std::deque<Asked> asked_;
};

// Pieces with gaps, in the file and in memory.
Slice some_file(Random& random) {
  const bool large = pick(random, 0, 2) == 0;
  std::vector<std::int64_t> offsets;
  std::vector<std::uint64_t> lens;
  std::uint64_t at = pick(random, 0, 5000);
  for (std::uint64_t i = pick(random, 2, large ? 8U : 60U); i > 0; --i) {
    offsets.push_back(as_signed(at));
    lens.push_back(large ? pick(random, 4096, 20000) : pick(random, 1, 500));
    at += lens.back() + pick(random, 0, 300);
  }
  const Pattern pattern = Pattern::list(offsets, lens);
  return {pattern, 0, 0, pattern.len_bytes()};
}

// A call in which rank 1 has all bytes, and rank 0 on another node is the agent.
struct Call {
  Call(Direction its_direction, Random& random)
      : direction(its_direction),
        file(some_file(random)),
        memory{Pattern::strided(file.len_bytes / 7 + 1, 10, Pattern::contiguous(7)), 0, 0,
               file.len_bytes},
        buffer(static_cast<std::size_t>(memory.pattern.highest()), background) {
    Slice at_address = memory;
    at_address.base = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(buffer.data()));
    near.post = make_post(file, at_address);
    situation.posts = {Post{}, near.post};
    situation.tuning.strategy = Strategy::disk_directed;
    situation.tuning.path = Path::pull;
    situation.tuning.max_agents = 1;
    situation.tuning.window_bytes = 4096 * pick(random, 1, 8);
    plan = situation.plan(direction);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Calls visit(file offset, byte of the buffer) for each byte of the master.
  template <class Visit>
  void each_byte(Visit visit) {
    Cursor there(file);
    Cursor here(memory);
    for (; !there.done(); there.advance(1), here.advance(1))
      visit(there.strip().offset, buffer[static_cast<std::size_t>(here.strip().offset)]);
  }

  // Runs the master to its end.
  Status run(Channel& channel, LogicalFile& logical, Messenger& agent) {
    constexpr std::array agents{0};
    Counters counters;
    WindowStaging staging;
    Aside disk([] {});
    PathContext context{.direction = direction,
                        .plan = plan,
                        .mine = near.post,
                        .near = {&near, 1},
                        .channel = channel,
                        .file = logical,
                        .counters = counters,
                        .staging = staging,
                        .disk = disk,
                        .messenger = &agent};
    SubgroupMaster master(context, context.near, agents);
    Status status = master.start();
    for (int step = 0; step < 100'000 && status && !master.done(); ++step)
      status = status_of(master.step());
    EXPECT_TRUE(!status || master.done()) << "does not end";
    return status;
  }

  Direction direction;
  Slice file;
  Slice memory;  // relative to the begin of the buffer
  std::vector<std::byte> buffer;
  NearPost near;
  test::Situation situation{.posts = {}, .members = test::members_on(2, 2, 2), .one_node = false};
  Plan plan;  // refers to the situation
};

Status check_write(Channel& channel, LogicalFile& file, Random& random) {
  Call call(Direction::write, random);
  DamagingAgent agent(call.plan, 0, random);
  call.each_byte([](std::int64_t offset, std::byte& byte) { byte = value_at(offset); });
  const std::vector<std::byte> before = call.buffer;
  const Status status = call.run(channel, file, agent);
  EXPECT_TRUE(call.buffer == before);
  EXPECT_TRUE(agent.has_damaged() || status.has_value());
  EXPECT_TRUE(!status || agent.bytes_written() == call.file.len_bytes);
  return status;
}

Status check_read(Channel& channel, LogicalFile& file, Random& random) {
  Call call(Direction::read, random);
  const auto file_bytes = static_cast<std::int64_t>(pick(random, 0, 100'000));
  DamagingAgent agent(call.plan, file_bytes, random);
  const Status status = call.run(channel, file, agent);
  EXPECT_TRUE(agent.has_damaged() || status.has_value());
  bool is_right = true;
  call.each_byte([&](std::int64_t offset, std::byte& byte) {
    is_right = is_right && byte == (offset < file_bytes ? value_at(offset) : background);
    byte = background;
  });
  EXPECT_TRUE(agent.has_damaged() || is_right);
  // The gaps are as they were.
  EXPECT_TRUE(std::ranges::all_of(call.buffer, [](std::byte each) { return each == background; }));
  return status;
}

unsigned setting(const char* name, unsigned usual) {
  const char* text = std::getenv(name);
  return text == nullptr ? usual : static_cast<unsigned>(std::strtoul(text, nullptr, 10));
}

TEST(SubgroupFuzz, MastersEndWhateverAnAgentAnswers) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("shima_subgroup_fuzz_" + std::to_string(::getpid()));
  LogicalFile file = LogicalFile::open({.path = path, .write = true, .create = true}).value();
  const unsigned first = setting("SHIMA_SEED", 1);
  const unsigned rounds = setting("SHIMA_FUZZ_ROUNDS", 200);
  unsigned refused = 0;
  test::run_members({.members = 2, .nodes = 2}, [&](std::unique_ptr<Channel> channel) {
    if (channel->rank() != 1) return;
    for (unsigned seed = first; seed < first + rounds && !testing::Test::HasFailure(); ++seed) {
      SCOPED_TRACE("SHIMA_SEED=" + std::to_string(seed));
      Random random(seed);
      if (!check_write(*channel, file, random)) ++refused;
      if (!check_read(*channel, file, random)) ++refused;
    }
  });
  std::filesystem::remove(path);
  // Both kinds of ends were met.
  EXPECT_TRUE(rounds < 100 || (refused > rounds / 10 && refused < rounds * 2 - rounds / 10))
      << refused;
}

}  // namespace
}  // namespace shima
