// I/O nodes: striped files over two daemons on loopback behave as on local targets; random accesses
// are compared with a byte array.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include "iod_world.h"
#include "store/remote/connection.h"
#include "store/remote/message.h"
#include "store/remote/remote_files.h"
#include "store/striped/restripe.h"

namespace shima {
namespace {

using remote::Op;
using remote::Request;

// --- messages and places ------------------------------------------------------------------------

Request some_request() {
  Request request;
  request.head.op = static_cast<std::uint32_t>(Op::write);
  request.head.serial = 7;
  request.runs = {{0, 3}, {100, 5}};
  request.words = {"target", "", "name"};
  return request;
}

TEST(IodMessage, ComesBackAsItWas) {
  const auto bytes = encode(some_request(), 8);
  remote::RequestHead head;
  std::memcpy(&head, bytes.data(), sizeof head);
  EXPECT_EQ(head.data_bytes, 8U);
  ASSERT_EQ(remote::rest_of(head).value(), bytes.size() - sizeof head);
  const auto back = remote::decode(head, std::span(bytes).subspan(sizeof head));
  ASSERT_TRUE(back.has_value()) << describe(back.error());
  EXPECT_EQ(back->runs, some_request().runs);
  EXPECT_EQ(back->words, some_request().words);
}

TEST(IodMessage, RefusesNumbersThatDoNotAgree) {
  const auto refuses = [](auto change) {
    auto bytes = encode(some_request(), 8);
    remote::RequestHead head;
    std::memcpy(&head, bytes.data(), sizeof head);
    change(head, bytes);
    return !remote::rest_of(head) ||
           !remote::decode(head, std::span(bytes).subspan(sizeof head)).has_value();
  };
  const auto run_at = [](auto& bytes) {
    return reinterpret_cast<remote::Run*>(bytes.data() + sizeof(remote::RequestHead));
  };
  EXPECT_FALSE(refuses([](auto&, auto&) {}));
  EXPECT_TRUE(refuses([](auto& head, auto&) { head.op = 0; }));
  EXPECT_TRUE(refuses([](auto& head, auto&) { head.op = 1000; }));
  EXPECT_TRUE(refuses([](auto& head, auto&) { head.run_count = 1U << 31; }));
  EXPECT_TRUE(refuses([](auto& head, auto&) { head.words_bytes = ~0ULL; }));
  EXPECT_TRUE(refuses([](auto& head, auto&) { head.data_bytes = 9; }));
  EXPECT_TRUE(refuses([](auto& head, auto&) { head.data_bytes = std::uint64_t{3} << 20; }));
  EXPECT_TRUE(refuses([&](auto&, auto& bytes) { run_at(bytes)->offset = -1; }));
  EXPECT_TRUE(refuses([&](auto&, auto& bytes) { run_at(bytes)->len_bytes = ~0ULL; }));
  EXPECT_TRUE(refuses([&](auto&, auto& bytes) {
    run_at(bytes)->offset = std::numeric_limits<std::int64_t>::max();
  }));
  EXPECT_TRUE(refuses([](auto&, auto& bytes) { bytes.pop_back(); }));
  EXPECT_TRUE(refuses([](auto&, auto& bytes) { bytes[48 + 32] = std::byte{200}; }));
}

TEST(IodPlace, IsPartOfAListOfTargets) {
  const auto list =
      parse_target_list("a=iod://host:7000/a:/disk/b:c=iod://[::1]:7/x:iod://h:1/y:d=/z");
  ASSERT_TRUE(list.has_value()) << describe(list.error());
  const std::vector<TargetPlace> wanted{{"a", "iod://host:7000/a"},
                                        {"b", "/disk/b"},
                                        {"c", "iod://[::1]:7/x"},
                                        {"y", "iod://h:1/y"},
                                        {"d", "/z"}};
  EXPECT_EQ(*list, wanted);
  EXPECT_EQ(parse_target_file("a iod://host:7000/b\n")->front(),
            (TargetPlace{"a", "iod://host:7000/b"}));
  for (const char* bad : {"a=iod://host/a", "a=iod://host:7000", "a=iod://:7000/a",
                          "a=iod://host:7000/", "a=iod://host:7000/a/b", "a=iod://host:x/a"})
    EXPECT_FALSE(parse_target_list(bad).has_value()) << bad;
  EXPECT_EQ(remote::parse_place("iod://[::1]:7/x")->node.name(), "[::1]:7");
}

// --- files --------------------------------------------------------------------------------------

class Iod : public IodWorld {};

TEST_F(Iod, KeepsWhatRandomAccessesWrite) {
  make("d/f", three, {});
  auto file = LogicalFile::open({.path = path("d/f"), .read = true, .write = true});
  ASSERT_TRUE(file.has_value()) << describe(file.error());
  std::mt19937 random(1);
  Bytes model;
  for (int round = 0; round < 200; ++round) {
    const std::size_t begin = random() % 3'000'000;
    const std::size_t len = 1 + random() % (round % 20 == 0 ? 5'000'000 : 20'000);
    if (random() % 2 == 0) {
      const Bytes bytes = some_bytes(len, static_cast<unsigned>(random()));
      if (model.size() < begin + len) model.resize(begin + len);
      std::ranges::copy(bytes, model.begin() + as_signed(begin));
      require(file->write(FileOffset{as_signed(begin)}, bytes.data(), bytes.size()));
    } else {
      Bytes bytes(len);
      const auto found = file->read(FileOffset{as_signed(begin)}, bytes.data(), len);
      ASSERT_TRUE(found.has_value()) << describe(found.error());
      ASSERT_EQ(*found, begin >= model.size() ? 0 : std::min(len, model.size() - begin));
      ASSERT_TRUE(std::equal(bytes.begin(), bytes.begin() + as_signed(*found),
                             model.begin() + as_signed(std::min(begin, model.size()))));
    }
  }
  EXPECT_EQ(file->size()->value, as_signed(model.size()));
  require(file->sync());
  require(file->close());
  EXPECT_EQ(contents("d/f"), model);
}

TEST_F(Iod, MovesManyRunsInFewRequests) {
  make("d/f", {{{0}, 1 << 20, {"a"}}}, {});
  auto file = LogicalFile::open({.path = path("d/f"), .read = true, .write = true});
  ASSERT_TRUE(file.has_value());
  constexpr std::size_t count = 5000;
  Bytes out = some_bytes(count * 100, 1);
  Bytes in(out.size());
  const auto move = [&](Bytes& bytes, bool writing) {
    std::vector<iovec> pieces;
    std::vector<LogicalRun> runs;
    pieces.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      pieces.push_back({bytes.data() + i * 100, 100});
      runs.push_back({FileOffset{as_signed(i * 177)}, {&pieces.back(), 1}, 100});
    }
    return file->move_apart(runs, writing);
  };
  EXPECT_TRUE(move(out, true));
  EXPECT_TRUE(move(in, false));
  EXPECT_EQ(in, out);
  char beyond = 0;
  const iovec piece{&beyond, 1};
  EXPECT_FALSE(file->move_apart(
      std::vector<LogicalRun>{{FileOffset{as_signed(count * 177)}, {&piece, 1}, 1}}, false));
  // 5000 runs each way in messages of 1024, and what opening and sizes cost.
  const std::string status = nodes_[0]->status();
  const std::size_t at = status.find(" requests", status.find("target a"));
  const std::size_t number = status.rfind(' ', at - 1);
  EXPECT_LT(std::stoul(status.substr(number + 1, at - number)), 60U) << status;
  require(file->close());
}

// Nobody waits for the replies to advice, of which there may be more than are kept.
TEST_F(Iod, TakesAdviceWithoutAReply) {
  const Bytes bytes = some_bytes(100'000, 5);
  make("d/f", {{{0}, 4096, {"a", "b"}}}, bytes);
  auto file = LogicalFile::open({.path = path("d/f"), .read = true});
  ASSERT_TRUE(file.has_value());
  for (int round = 1; round < 100; ++round) {
    for (int i = 0; i < round; ++i) file->will_need({{i}, {i + 90'000}});
    Bytes found(50'000);
    ASSERT_EQ(file->read(FileOffset{round}, found.data(), found.size()).value(), found.size());
    ASSERT_TRUE(std::equal(found.begin(), found.end(), bytes.begin() + round));
    EXPECT_EQ(file->size()->value, 100'000);
  }
  file->will_need({{0}, {90'000}});
  require(file->close());
  EXPECT_EQ(contents("d/f"), bytes);
}

TEST_F(Iod, ServesOperationsOnFiles) {
  const Bytes bytes = some_bytes(100'000, 3);
  make("d/f", three, bytes);
  EXPECT_EQ(findings(false), "");
  require(rename_file(path("d/f"), path("e/g")));
  require(restripe({.path = path("e/g"), .regions = cut}, {}));
  EXPECT_EQ(contents("e/g"), bytes);
  require(truncate_striped(path("e/g"), 5000));
  EXPECT_EQ(contents("e/g"), Bytes(bytes.begin(), bytes.begin() + 5000));
  require(set_permissions(path("e/g"), 0600));
  EXPECT_EQ(findings(false), "");
  require(remove_file(path("e/g")));
  EXPECT_EQ(findings(false), "");
  for (const char* target : {"target-a", "target-b", "target-c"})
    for (const auto& entry : std::filesystem::directory_iterator(path(target)))
      EXPECT_EQ(entry.path().filename(), ".shima-target");
}

TEST_F(Iod, RefusesRestripeWhileAnotherClientWrites) {
  make("d/f", three, some_bytes(10'000, 3));
  auto writer = LogicalFile::open({.path = path("d/f"), .read = true, .write = true});
  ASSERT_TRUE(writer.has_value());
  const Status refused = restripe({.path = path("d/f"), .regions = cut}, {});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::file_in_use) << describe(refused.error());
  require(writer->close());
  require(restripe({.path = path("d/f"), .regions = cut}, {}));
}

TEST_F(Iod, ExcludesByLocks) {
  make("d/f", {{{0}, 4096, {"a"}}}, {});
  auto one = LogicalFile::open({.path = path("d/f"), .read = true, .write = true});
  auto other = LogicalFile::open({.path = path("d/f"), .read = true, .write = true});
  ASSERT_TRUE(one && other);
  require(one->lock({{0}, {100}}, true));
  std::atomic<bool> has_it = false;
  std::thread waits([&] {
    require(other->lock({{50}, {60}}, true));
    has_it = true;
  });
  ::usleep(20'000);
  EXPECT_FALSE(has_it);
  one->unlock({{0}, {100}});
  waits.join();
  EXPECT_TRUE(has_it);
}

// --- failures -----------------------------------------------------------------------------------

TEST_F(Iod, EndsWithErrorsUntilFilesAreOpenedAgain) {
  make("d/f", {{{0}, 4096, {"a"}}}, some_bytes(100, 1));
  auto file = LogicalFile::open({.path = path("d/f"), .read = true, .write = true});
  ASSERT_TRUE(file.has_value());
  stop(0);
  char byte = 0;
  const auto lost = file->read(FileOffset{0}, &byte, 1);
  ASSERT_FALSE(lost.has_value());
  EXPECT_EQ(lost.error().code, Code::io) << describe(lost.error());
  const auto unreachable = LogicalFile::open({.path = path("d/f"), .read = true});
  ASSERT_FALSE(unreachable.has_value());
  EXPECT_EQ(unreachable.error().code, Code::io) << describe(unreachable.error());
  start(0);
  EXPECT_EQ(file->read(FileOffset{0}, &byte, 1).error().code, Code::io);
  EXPECT_EQ(contents("d/f"), some_bytes(100, 1));
}

TEST_F(Iod, RefusesAnotherKeyAndOneThatOthersCanRead) {
  write_key("other", "another key of sufficient length");
  const auto other = remote::ask_status(nodes_[0]->address(), path("other"));
  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().code, Code::access_denied) << describe(other.error());
  ::chmod(path("key").c_str(), 0644);
  EXPECT_FALSE(remote::ask_status(nodes_[0]->address(), path("key")).has_value());
  ::chmod(path("key").c_str(), 0600);
  EXPECT_TRUE(remote::ask_status(nodes_[0]->address(), path("key")).has_value());
}

TEST_F(Iod, OpensNothingOutsideItsTargets) {
  std::ofstream(path("secret")) << "secret";
  std::filesystem::create_symlink(path("secret"), path("target-a/" + std::string(32, 'a') + ".0"));
  auto connection = remote::Connection::open(nodes_[0]->address(), path("key"));
  ASSERT_TRUE(connection.has_value());
  for (const std::string& name :
       {std::string("../secret"), path("secret"), std::string(".shima-target"), std::string("."),
        std::string(32, 'a') + ".0", std::string(32, 'a') + ".0/../../secret"}) {
    Request request;
    request.head.op = static_cast<std::uint32_t>(Op::open);
    request.head.first = remote::Opening::read;
    request.words = {"a", name};
    std::vector<std::byte> answer;
    EXPECT_FALSE((*connection)->call(request, answer, 4096).has_value()) << name;
    request.head.op = static_cast<std::uint32_t>(Op::read_text);
    request.head.first = 100;
    EXPECT_FALSE((*connection)->call(request, answer, 4096).has_value()) << name;
    EXPECT_FALSE((*connection)->is_broken());
  }
}

// A session keeps few targets attached, so that attaching the goal may detach the others.
TEST_F(Iod, LinksIntoATargetThatWasNotAttached) {
  constexpr int count = 65;
  iod::ServedTargets served;
  for (int i = 0; i < count; ++i) {
    const std::string name = "t" + std::to_string(i);
    std::filesystem::create_directory(path(name));
    ASSERT_TRUE(Target::open_at({name, path(name)}, Target::Purpose::create).has_value());
    served.push_back(std::make_shared<iod::ServedTarget>());
    served.back()->place = {name, path(name)};
  }
  iod::Traffic traffic;
  RunMergers mergers;
  iod::LockHolders lock_holders;
  const std::string client = "client";
  iod::Session session(served, traffic, {mergers, lock_holders}, client);
  iod::Allowance memory(std::size_t{16} << 20);
  iod::Buffer data(memory);
  const auto ask = [&](Op op, std::vector<std::string> words) {
    Request request;
    request.head.op = static_cast<std::uint32_t>(op);
    request.head.first = op == Op::make ? 0600 : 0;
    request.words = std::move(words);
    const auto done = session.execute(request, data);
    EXPECT_TRUE(done.has_value()) << describe(done.error());
  };
  const std::string part = std::string(32, 'a') + ".0";
  ask(Op::make, {"t0", part});
  for (int i = 1; i + 1 < count; ++i) ask(Op::attach, {"t" + std::to_string(i), ""});
  ask(Op::link_part, {"t0", part, "t64"});
  EXPECT_TRUE(std::filesystem::exists(path("t64/" + part)));
}

// A session may move what others want as well, but only what it could move itself.
TEST_F(Iod, MergesNoWriteOfASessionThatMayOnlyRead) {
  const std::string part = std::string(32, 'a') + ".0";
  iod::ServedTargets served{std::make_shared<iod::ServedTarget>()};
  served.front()->place = {"a", path("target-a")};
  ASSERT_TRUE(Target::open_at(served.front()->place, Target::Purpose::create).has_value());
  std::ofstream(path("target-a/" + part)) << std::string(4096, '.');
  RunMergers mergers;
  iod::LockHolders lock_holders;
  const std::string client = "client";
  iod::Traffic traffic;
  iod::Allowance memory(std::size_t{16} << 20);
  std::atomic<bool> writes = true;
  const auto open_as = [&](iod::Session& session, std::int64_t how) {
    iod::Buffer data(memory);
    Request request;
    request.head.op = static_cast<std::uint32_t>(Op::open);
    request.head.first = how;
    request.words = {"a", part};
    EXPECT_TRUE(session.execute(request, data).has_value());
  };
  // Pieces with gaps between them, so that they are several runs.
  const auto write = [&](iod::Session& session, std::int64_t first, char value) {
    iod::Buffer data(memory);
    Request request;
    request.head.op = static_cast<std::uint32_t>(Op::write);
    for (std::int64_t at = first; at < 4096; at += 256) request.runs.push_back({at, 64});
    request.head.data_bytes = 64 * request.runs.size();
    std::memset(data.take(request.head.data_bytes).data(), value, request.head.data_bytes);
    return session.execute(request, data);
  };
  std::thread writer([&] {
    iod::Session session(served, traffic, {mergers, lock_holders}, client);
    open_as(session, remote::Opening::write);
    while (writes) EXPECT_TRUE(write(session, 0, 'w').has_value());
  });
  iod::Session reader(served, traffic, {mergers, lock_holders}, client);
  open_as(reader, remote::Opening::read);
  for (int i = 0; i < 3000; ++i) EXPECT_FALSE(write(reader, 128, 'r').has_value());
  writes = false;
  writer.join();
  std::ifstream in(path("target-a/" + part));
  const std::string found(std::istreambuf_iterator<char>(in), {});
  EXPECT_EQ(found.find('r'), std::string::npos);
}

TEST_F(Iod, DropsStrangersThatSayNothing) {
  auto wanted = options(0);
  wanted.listen.port = "0";
  wanted.handshake_timeout = std::chrono::milliseconds(100);
  auto node = iod::Daemon::start(wanted);
  ASSERT_TRUE(node.has_value());
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(static_cast<std::uint16_t>(std::stoul((*node)->address().port)));
  ASSERT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  std::array<char, 4096> heard{};
  ssize_t len = 1;
  while (len > 0) len = ::recv(socket.get(), heard.data(), heard.size(), 0);
  EXPECT_EQ(len, 0);
}

}  // namespace
}  // namespace shima
