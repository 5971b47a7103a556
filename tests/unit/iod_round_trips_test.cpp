// How often a client waits for I/O nodes: each of these numbers is the time that an operation takes
// over a network. Also: requests that are linked.
#include <gtest/gtest.h>

#include "iod_world.h"
#include "store/remote/connection.h"
#include "store/remote/message.h"
#include "store/subfile/file_steps.h"

namespace shima {
namespace {

using remote::Flag;
using remote::Op;
using remote::Request;
using Step = TargetFiles::Step;

const Regions two_on_each{{{0}, 4096, {"a", "b", "a", "b"}}};
const Regions one_on_each{{{0}, 4096, {"a", "b"}}};

class IodRoundTrips : public IodWorld {
 protected:
  template <class What>
  static std::uint64_t trips_of(What what) {
    const std::uint64_t before = remote::round_trips();
    what();
    return remote::round_trips() - before;
  }
  // The first operations of a process connect to the nodes.
  void SetUp() override {
    IodWorld::SetUp();
    require(create_striped({.path = path("d/first"), .regions = two_on_each}));
    auto file = LogicalFile::open({.path = path("d/first"), .read = true});
    ASSERT_TRUE(file.has_value()) << describe(file.error());
    require(file->close());
    require(remove_file(path("d/first")));
  }
};

TEST_F(IodRoundTrips, AreFewForASmallFile) {
  for (const Regions& regions : {one_on_each, two_on_each}) {
    const std::string file_path = path("d/f");
    EXPECT_EQ(trips_of([&] {
                require(create_striped({.path = file_path, .regions = regions, .exclusive = true}));
              }),
              2U)
        << "the targets; the parts";
    std::optional<LogicalFile> file;
    EXPECT_EQ(trips_of([&] {
                auto opened = LogicalFile::open({.path = file_path, .read = true, .write = true});
                ASSERT_TRUE(opened.has_value()) << describe(opened.error());
                file = *std::move(opened);
              }),
              2U)
        << "the parts; their opening";
    EXPECT_EQ(trips_of([&] { require(file->write(FileOffset{0}, "x", 1)); }), 1U);
    EXPECT_EQ(trips_of([&] { EXPECT_EQ(file->size()->value, 1); }), 1U);
    EXPECT_EQ(trips_of([&] { require(file->close()); }), 1U);
    file.reset();
    EXPECT_EQ(trips_of([&] {
                auto opened = LogicalFile::open({.path = file_path, .read = true});
                ASSERT_TRUE(opened.has_value()) << describe(opened.error());
                require(opened->close());
              }),
              3U)
        << "the subfiles; their opening; their closing";
    EXPECT_EQ(trips_of([&] { require(truncate_striped(file_path, 100'000)); }), 2U)
        << "the parts; the sizes";
    EXPECT_EQ(trips_of([&] { require(remove_file(file_path)); }), 3U)
        << "whether it is a second master file; the parts; their removal";
    EXPECT_EQ(findings(false), "");
  }
}

TEST_F(IodRoundTrips, LeaveNothingOfAFileThatCannotBeCreated) {
  // The directory that would hold the master file does not exist.
  EXPECT_FALSE(create_striped({.path = path("none/f"), .regions = two_on_each}).has_value());
  std::filesystem::create_directory(path("target-a/any"));
  for (const char* target : {"target-a", "target-b"})
    for (const auto& entry : std::filesystem::directory_iterator(path(target)))
      EXPECT_TRUE(entry.path().filename() == ".shima-target" || entry.is_directory())
          << entry.path();
}

TEST_F(IodRoundTrips, EndAChainOfStepsAtTheFirstFailure) {
  const std::string id(32, 'a');
  const auto target = Target::open_at({"a", place_of(0)}, Target::Purpose::use);
  ASSERT_TRUE(target.has_value()) << describe(target.error());
  const auto here = Target::open_at({"c", path("target-c")}, Target::Purpose::create);
  ASSERT_TRUE(here.has_value()) << describe(here.error());
  for (TargetFiles* files : {&target->files(), &here->files()}) {
    const auto make = [&](int i) {
      return Step{.kind = Step::Kind::make, .name = id + "." + std::to_string(i), .mode = 0600};
    };
    const auto examine = [&](int i) {
      return Step{.kind = Step::Kind::examine, .name = id + "." + std::to_string(i)};
    };
    const auto first = take_steps(*files, std::vector{examine(7), make(0), examine(0)});
    EXPECT_EQ(first[0].done.error().sys_errno, ENOENT);  // to look is no failure
    EXPECT_TRUE(first[1].done && first[2].done && S_ISREG(first[2].facts.st_mode));
    const auto second = take_steps(*files, std::vector{make(1), make(0), make(2), examine(1)});
    EXPECT_TRUE(second[0].done.has_value());
    EXPECT_EQ(second[1].done.error().sys_errno, EEXIST);
    EXPECT_EQ(second[2].done.error().code, Code::cancelled);
    EXPECT_EQ(second[3].done.error().code, Code::cancelled);
    EXPECT_FALSE(files->examine(id + ".2").has_value());
    // More than are under way at once.
    std::vector<Step> many;
    for (int i = 10; i < 110; ++i) many.push_back(make(i));
    for (const auto& result : take_steps(*files, many)) EXPECT_TRUE(result.done.has_value());
    for (Step& step : many) step.kind = Step::Kind::remove;
    for (int times = 0; times < 2; ++times)
      for (const auto& result : take_steps(*files, many)) EXPECT_TRUE(result.done.has_value());
    many[40] = make(0);
    for (std::size_t i = 0; const auto& result : take_steps(*files, many))
      EXPECT_EQ(result.done.has_value(), i++ < 40);
  }
}

TEST_F(IodRoundTrips, NoCallFollowsAFailedRequest) {
  auto connection = remote::Connection::open({"127.0.0.1", ports_[0]}, path("key")).value();
  Request wrong;
  wrong.head.op = static_cast<std::uint32_t>(Op::size);  // no file is open
  wrong.head.flags = Flag::linked;
  EXPECT_FALSE(connection->call(wrong).has_value());
  Request join;
  join.head.op = static_cast<std::uint32_t>(Op::join);
  const DirectedCall call{};
  const iovec piece{const_cast<DirectedCall*>(&call), sizeof call};
  require(connection->send(join, std::span(&piece, 1)));
  EXPECT_FALSE(connection->receive({}).has_value());
  EXPECT_TRUE(connection->is_broken());
}

}  // namespace
}  // namespace shima
