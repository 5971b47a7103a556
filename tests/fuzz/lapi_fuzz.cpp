// Damaged bytes over every socket of a LAPI job: to a task from another one, to the server of a
// task, to the meeting place and from it. Nothing crashes, nothing outside the named memory
// changes, and a task that sends what no task sends is lost with one line.
//
// SHIMA_FUZZ_ROUNDS sets the number of rounds, SHIMA_SEED the first.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdlib>
#include <random>

#include "lapi/engine.h"
#include "lapi/way/meeting_place.h"
#include "raw_lapi_task.h"

namespace shima::lapi {
namespace {

using Random = std::mt19937_64;
using std::chrono::milliseconds;

constexpr std::uint64_t arena_bytes = std::uint64_t{64} << 10;
constexpr std::uint64_t guard_bytes = std::uint64_t{1} << 20;
constexpr std::uint64_t last_ticket = 0x1a57;

unsigned rounds(unsigned usual) {
  const char* text = std::getenv("SHIMA_FUZZ_ROUNDS");
  return text == nullptr ? usual : static_cast<unsigned>(std::strtoul(text, nullptr, 10));
}

unsigned first_seed() {
  const char* text = std::getenv("SHIMA_SEED");
  return text == nullptr ? 1 : static_cast<unsigned>(std::strtoul(text, nullptr, 10));
}

// The memory that messages may name, between memory that ends a process that touches it.
class Arena {
 public:
  Arena()
      : all_(static_cast<std::byte*>(::mmap(nullptr, arena_bytes + 2 * guard_bytes, PROT_NONE,
                                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
    ::mprotect(all_ + guard_bytes, arena_bytes, PROT_READ | PROT_WRITE);
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() { ::munmap(all_, arena_bytes + 2 * guard_bytes); }

  [[nodiscard]] std::byte* data() const { return all_ + guard_bytes; }
  // An address here, near the ends, or where no memory is.
  [[nodiscard]] std::uint64_t some_address(Random& random) const {
    const auto begin = reinterpret_cast<std::uint64_t>(data());
    switch (random() % 8) {
      case 0:
        return 16;
      case 1:
        return random() | std::uint64_t{1} << 63;
      case 2:
        return begin + arena_bytes - random() % 64;
      case 3:
        return begin - random() % 64;
      default:
        return begin + random() % arena_bytes / 8 * 8;
    }
  }
  // A damaged address must not name other memory of this process.
  [[nodiscard]] std::uint64_t harmless(std::uint64_t address) const {
    const auto begin = reinterpret_cast<std::uint64_t>(data());
    return address - begin + guard_bytes <= arena_bytes + 2 * guard_bytes
               ? address
               : address | std::uint64_t{1} << 63;
  }

 private:
  std::byte* all_;
};

std::atomic<int> losses{0};
const Arena* arena_of_handlers = nullptr;

void on_error(lapi_handle_t*, int*, lapi_err_t* type, int*, int*) {
  if (*type == COM_ERR) ++losses;  // the others are of handlers that are not registered
}
void on_complete(lapi_handle_t*, void*) {}

void* on_header(lapi_handle_t*, void*, uint*, ulong* msg_len, compl_hndlr_t** handler, void**) {
  if (*msg_len % 2 == 0) *handler = on_complete;
  return *msg_len <= arena_bytes ? arena_of_handlers->data() : nullptr;
}

lapi_vec_t* on_vector(lapi_handle_t*, void*, uint*, ulong* lens, compl_hndlr_t**, void**) {
  static void* info[1];
  static ulong len[1];
  static lapi_vec_t into{LAPI_GEN_IOVECTOR, 1, info, len};
  info[0] = arena_of_handlers->data();
  len[0] = std::min<ulong>(lens[0], arena_bytes);
  return &into;
}

// A message that a task could send, and its header and data.
struct Sample {
  Message head;
  std::vector<std::uint64_t> header;
  std::size_t data_bytes = 0;
};

Sample some_message(Random& random, const Arena& arena) {
  constexpr Kind kinds[] = {Kind::active, Kind::put,       Kind::get,   Kind::get_reply,
                            Kind::rmw,    Kind::rmw_reply, Kind::count, Kind::done,
                            Kind::fence,  Kind::barrier,   Kind::gather};
  constexpr std::size_t lens[] = {0, 1, 8, 100, 2048, 2049, 20000};
  Sample made;
  Message& head = made.head;
  head.kind = kinds[random() % std::size(kinds)];
  head.ticket = random() % 6;
  head.address = arena.some_address(random);
  if (random() % 2 == 0) head.target_counter = arena.some_address(random);
  const std::size_t len = lens[random() % std::size(lens)];
  const bool is_transfer = head.kind == Kind::put || head.kind == Kind::get;
  if (is_transfer && random() % 2 == 0) {
    for (std::size_t left = len; left > 0; ++head.pieces) {
      const std::size_t part = std::min<std::size_t>(left, 1 + random() % 900);
      made.header.push_back(arena.some_address(random));
      made.header.push_back(part);
      left -= part;
    }
  }
  if (head.kind == Kind::get) head.operands[0] = len;
  if (head.kind == Kind::put || head.kind == Kind::active || head.kind == Kind::get_reply)
    head.data_bytes = made.data_bytes = len;
  if (head.kind == Kind::put && head.pieces == 0 && len <= most_data_in_head) {
    head.flags = data_in_head;
    made.data_bytes = 0;
  }
  if (head.kind == Kind::rmw) head.code = rmw_code(static_cast<std::uint32_t>(random() % 4), 64);
  if (head.kind == Kind::active) {
    head.address = 1 + random() % 3;  // the third has not been registered
    made.header.resize(random() % 20);
    if (head.address == 2) {
      head.flags = vector_handler;
      head.vector_type = LAPI_GEN_IOVECTOR;
      head.pieces = 1;
      made.header.resize(made.header.size() + 1);
      made.header[0] = len;
    }
  }
  head.header_bytes = static_cast<std::uint32_t>(made.header.size() * sizeof(std::uint64_t));
  return made;
}

std::uint64_t edge(Random& random) {
  constexpr unsigned bits[] = {0, 1, 4, 8, 16, 24, 31, 32, 61, 62, 63};
  const std::uint64_t near =
      (std::uint64_t{1} << bits[random() % std::size(bits)]) + random() % 5 - 2;
  return random() % 2 == 0 ? near : 0 - near;
}

void damage(Random& random, std::span<std::byte> bytes) {
  if (bytes.empty()) return;
  if (random() % 2 == 0) {
    bytes[random() % bytes.size()] ^= std::byte{1} << random() % 8;
    return;
  }
  const std::uint64_t word = edge(random);
  const std::size_t at = random() % bytes.size() / 8 * 8;
  std::memcpy(bytes.data() + at, &word, std::min(sizeof word, bytes.size() - at));
}

std::vector<std::byte> damaged(Random& random, const Arena& arena, Sample sample) {
  Message& head = sample.head;
  if (random() % 3 == 0)
    damage(random, std::as_writable_bytes(std::span(&head, 1)).first(message_head_bytes));
  if (random() % 6 == 0) damage(random, std::as_writable_bytes(std::span(sample.header)));
  if (head.kind == Kind::active) {
    if (head.address > 3) head.address |= std::uint64_t{1} << 63;
    head.flags &= static_cast<std::uint8_t>(~(head.address == 2 ? 0 : vector_handler));
    if (head.address == 2) head.flags |= vector_handler;  // a handler has one type
  } else {
    head.address = arena.harmless(head.address);
    for (std::size_t i = 0; i < sample.header.size(); i += 2)
      sample.header[i] = arena.harmless(sample.header[i]);
  }
  head.target_counter = arena.harmless(head.target_counter);
  std::vector<std::byte> bytes(message_head_bytes + sample.header.size() * 8 + sample.data_bytes);
  std::memcpy(bytes.data(), &head, message_head_bytes);
  if (!sample.header.empty())
    std::memcpy(bytes.data() + message_head_bytes, sample.header.data(), sample.header.size() * 8);
  if (random() % 40 == 0) bytes.resize(random() % bytes.size());
  if (random() % 60 == 0)
    for (int i = 0; i < 200; ++i) bytes.push_back(static_cast<std::byte>(random()));
  return bytes;
}

class Job {
 public:
  explicit Job(int tasks) : tasks_(tasks), place_(MeetingPlace::start(shared_with({}, {}))) {}
  [[nodiscard]] const ServiceAddress& address() const { return (*place_)->address(); }
  [[nodiscard]] Result<std::unique_ptr<Ways>> ways(int task, int context = 0) const {
    return Ways::over_hosts(address(),
                            {.context = context,
                             .task = task,
                             .tasks = tasks_,
                             .host = {static_cast<char>('a' + task)}},
                            {.same_process = true});
  }
  [[nodiscard]] Result<std::unique_ptr<Engine>> engine(int task, int context = 0) const {
    SHIMA_TRY_ASSIGN(auto own, ways(task, context));
    SHIMA_TRY_ASSIGN(auto engine, Engine::start(std::move(own), {.on_error = on_error}));
    engine->handlers().set(1, reinterpret_cast<void*>(&on_header));
    engine->handlers().set(2, reinterpret_cast<void*>(&on_vector));
    return engine;
  }

 private:
  int tasks_;
  Result<std::unique_ptr<MeetingPlace>> place_;
};

template <class Condition>
bool comes(Condition condition, milliseconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

std::size_t count_of(const std::string& text, const std::string& words) {
  std::size_t count = 0;
  for (auto at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++count;
  return count;
}

// One stream of messages to a task, which has asked for data meanwhile.
void attack(Random& random, int& answered) {
  const Arena arena;
  const Arena asked;
  arena_of_handlers = &arena;
  const int own = static_cast<int>(random() % 2);
  const Job job(2);
  auto engine = job.engine(1 - own);
  ASSERT_TRUE(engine) << describe(engine.error());
  auto ways = job.ways(own);
  ASSERT_TRUE(ways) << describe(ways.error());
  auto raw = std::make_unique<RawTask>(*std::move(ways));
  ASSERT_TRUE(raw->started());
  ASSERT_TRUE(raw->send(1 - own, Message{.kind = Kind::fence, .ticket = last_ticket - 1}));
  ASSERT_TRUE(
      comes([&] { return raw->has_got(Kind::done, last_ticket - 1); }, milliseconds(10000)));
  for (const std::uint64_t len : {8, 100, 20000})
    ASSERT_TRUE((*engine)->get(own, Pieces(arena.data(), len), Pieces(asked.data(), len), 0, {}));
  const int before = losses;
  bool is_taken = true;
  for (std::uint64_t i = 0; i < 1 + random() % 40 && is_taken; ++i)
    is_taken =
        raw->send(1 - own, damaged(random, arena, some_message(random, arena)), milliseconds(50));
  is_taken = is_taken && raw->send(1 - own, Message{.kind = Kind::fence, .ticket = last_ticket},
                                   milliseconds(50));
  if (is_taken && comes([&] { return raw->has_got(Kind::done, last_ticket) || losses != before; },
                        milliseconds(20)))
    answered += losses == before ? 1 : 0;
  raw.reset();
  EXPECT_TRUE((*engine)->finish());
  engine->reset();
}

TEST(LapiFuzz, DamagedMessagesDoNoHarm) {
  int answered = 0;
  losses = 0;
  testing::internal::CaptureStderr();
  const unsigned count = rounds(150);
  for (unsigned seed = first_seed(); seed < first_seed() + count && !HasFailure(); ++seed) {
    SCOPED_TRACE("SHIMA_SEED=" + std::to_string(seed));
    Random random(seed);
    attack(random, answered);
  }
  const std::string log = testing::internal::GetCapturedStderr();
  std::printf("%u streams: %d answered to the end, %d given up\n", count, answered, losses.load());
  // A task that ends at once may not have called its error handler.
  const std::size_t given_up = count_of(log, "it is ignored from now");
  EXPECT_GE(given_up, static_cast<std::size_t>(losses.load()));
  EXPECT_LE(given_up, count);
  EXPECT_EQ(count_of(log, "has ended"), 0U) << "one line for a loss";
  if (count >= 100) {
    EXPECT_GT(answered, 0);
    EXPECT_GT(losses, 10);
  }
}

// What a task tells the meeting place; later notices are damaged ones.
class HandTask {
 public:
  HandTask(const Job& job, int context, int task, int tasks) {
    auto socket = connect_to(job.address(), milliseconds(2000));
    if (!socket) return;
    socket_ = *std::move(socket);
    send({.kind = MeetingNotice::Kind::join,
          .context = context,
          .task = task,
          .tasks = tasks,
          .host = {'h'}});
  }
  bool send(const MeetingNotice& notice) { return send_notice(socket_.get(), notice); }
  // The next notice of this kind.
  bool receive(MeetingNotice::Kind kind, MeetingNotice& notice) {
    while (receive_all(socket_.get(), &notice, sizeof notice))
      if (notice.kind == kind) return true;
    return false;
  }

 private:
  UniqueFd socket_;
};

MeetingNotice some_notice(Random& random) {
  MeetingNotice notice{.kind = static_cast<MeetingNotice::Kind>(random() % 14),
                       .context = static_cast<int>(random() % 3),
                       .task = static_cast<int>(random() % 4),
                       .tasks = 3,
                       .meetings = random(),
                       .host = {static_cast<char>('a' + random() % 3)}};
  notice.memory = {static_cast<std::int32_t>(random() % 3 == 0 ? ::getpid() : random()),
                   static_cast<SharedRef::Kind>(random() % 4), static_cast<int>(random() % 30),
                   random() % 2 == 0 ? JobMemory::region_bytes(3) : random(), random()};
  if (random() % 2 == 0)
    damage(random,
           std::as_writable_bytes(std::span(&notice, 1)).first(offsetof(MeetingNotice, address)));
  if (random() % 8 == 0) notice.address.endpoint_count = static_cast<std::uint32_t>(random());
  if (notice.context == contexts_of_job - 1) notice.context = 0;
  return notice;
}

TEST(LapiFuzz, DamagedNoticesDoNotStopAMeetingPlace) {
  testing::internal::CaptureStderr();
  for (unsigned seed = first_seed(); seed < first_seed() + rounds(30); ++seed) {
    SCOPED_TRACE("SHIMA_SEED=" + std::to_string(seed));
    Random random(seed);
    const Job job(2);
    std::vector<std::unique_ptr<HandTask>> tasks;
    for (int i = 0; i < 20; ++i) {
      if (tasks.size() < 4 || random() % 4 == 0)
        tasks.push_back(std::make_unique<HandTask>(job, 0, static_cast<int>(random() % 3), 3));
      for (int n = 0; n < 5; ++n)
        std::ignore = tasks[random() % tasks.size()]->send(some_notice(random));
      if (random() % 8 == 0) tasks.erase(tasks.begin());
    }
    auto first = job.engine(0, contexts_of_job - 1);
    auto second = job.engine(1, contexts_of_job - 1);
    ASSERT_TRUE(first && second);
    std::thread other([&] { EXPECT_TRUE((*second)->global_fence()); });
    EXPECT_TRUE((*first)->global_fence());
    other.join();
    EXPECT_TRUE((*first)->finish() && (*second)->finish());
  }
  testing::internal::GetCapturedStderr();
}

TEST(LapiFuzz, DamagedNoticesDoNotEndATask) {
  testing::internal::CaptureStderr();
  for (unsigned seed = first_seed(); seed < first_seed() + rounds(60); ++seed) {
    SCOPED_TRACE("SHIMA_SEED=" + std::to_string(seed));
    Random random(seed);
    std::atomic<int> served{0};
    const auto serve = [&](Server&, Server::Visitor& visitor) {
      const int count = ++served;
      const MeetingNotice make{.kind = MeetingNotice::Kind::make};
      if (count == 1)
        return send_notice(visitor.socket.get(), random() % 2 == 0 ? some_notice(random) : make);
      for (int i = 0; i < 60; ++i)
        if (!send_notice(visitor.socket.get(), some_notice(random))) return false;
      return random() % 2 == 0;
    };
    auto place = Server::start(shared_with({}, {}), {},
                               {.message_bytes = sizeof(MeetingNotice), .serve = serve});
    ASSERT_TRUE(place);
    auto ways =
        Ways::over_hosts((*place)->address(), {.task = 1, .tasks = 3}, {.same_process = true});
    if (!ways) continue;  // refused by a mismatch
    auto engine = Engine::start(*std::move(ways), {.on_error = on_error});
    ASSERT_TRUE(engine);
    comes([&] { return served > 1; }, milliseconds(1000));
    std::this_thread::sleep_for(milliseconds(2));
    EXPECT_TRUE((*engine)->finish());
    engine->reset();
  }
  testing::internal::GetCapturedStderr();
}

// Bytes of a stranger with the secret, or without it, do not keep another task from connecting.
TEST(LapiFuzz, DamagedGreetingsDoNotBlockATask) {
  testing::internal::CaptureStderr();
  const Job job(3);
  auto engine = job.engine(2);
  ASSERT_TRUE(engine);
  HandTask hand(job, 0, 0, 3);
  MeetingNotice joined;
  ASSERT_TRUE(hand.receive(MeetingNotice::Kind::make, joined));
  ASSERT_TRUE(hand.send({.kind = MeetingNotice::Kind::settled}));
  ASSERT_TRUE(hand.receive(MeetingNotice::Kind::joined, joined));
  Random random(first_seed());
  std::vector<UniqueFd> kept;
  for (unsigned i = 0; i < rounds(200); ++i) {
    ServiceAddress there = joined.address;
    if (random() % 4 == 0) damage(random, there.asker);
    auto socket = connect_to(there, milliseconds(2000));
    if (!socket) continue;
    std::array<std::uint32_t, 8> greeting{
        static_cast<std::uint32_t>(random() % 2 == 0 ? random() : 2 + random() % 4)};
    std::ignore = ::send(socket->get(), greeting.data(), random() % sizeof greeting, MSG_NOSIGNAL);
    if (random() % 4 == 0) kept.push_back(*std::move(socket));
  }
  auto other = job.engine(1);
  ASSERT_TRUE(other);
  Arena arena;
  lapi_cntr_t done{};
  EXPECT_TRUE((*other)->put(2, Pieces(arena.data(), 8), Pieces(arena.data() + 8, 8), 0,
                            {.complete = &done}));
  EXPECT_TRUE((*other)->wait_counter(done, 1));
  EXPECT_TRUE((*other)->finish() && (*engine)->finish());
  testing::internal::GetCapturedStderr();
}

}  // namespace
}  // namespace shima::lapi
