// TIMEOUT: 300
// A process may be killed at any moment of any operation on striped files (restripe:
// restripe_kill_test.cpp).
#include <gtest/gtest.h>

#include <fstream>

#include "fault/striped_kill.h"

namespace shima {
namespace {

TEST_F(StripedKill, Create) {
  for (const Regions& regions : {three, cut, beside, mixed})
    at_every_call({[&] { make("d/other", three, x); },
                   [&] { return create_striped({.path = path("d/new"), .regions = regions}); },
                   [&] {
                     const auto found = contents("d/new");
                     if (found) {
                       EXPECT_TRUE(found->empty());
                     }
                     EXPECT_EQ(contents("d/other"), x);
                   }});
}

TEST_F(StripedKill, Remove) {
  for (const Regions& regions : {three, mixed})
    at_every_call({[&] { make("d/old", regions, x); }, [&] { return remove_file(path("d/old")); },
                   [&] {
                     const auto found = contents("d/old");
                     if (found) {
                       EXPECT_EQ(*found, x);
                     }
                   }});
}

TEST_F(StripedKill, Truncate) {
  for (const Regions& regions : {three, cut})
    at_every_call({[&] { make("d/f", regions, x); },
                   [&] { return truncate_striped(path("d/f"), 17000); },
                   [&] {
                     const auto found = contents("d/f");
                     ASSERT_TRUE(found.has_value());
                     EXPECT_TRUE(*found == x || *found == Bytes(x.begin(), x.begin() + 17000));
                   }});
}

// Run by a user who may write the file but not replace it.
TEST_F(StripedKill, TruncateInPlace) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs a second user";
  constexpr uid_t nobody = 65534;
  at_every_call({[&] {
                   make("d/f", mixed, x);
                   require(set_permissions(path("d/f"), 0666));
                 },
                 [&]() -> Status {
                   if (::setresuid(nobody, nobody, nobody) != 0)
                     return fail(Code::internal, "setresuid");
                   return truncate_striped(path("d/f"), 17000);
                 },
                 [&] {
                   const auto found = contents("d/f");
                   ASSERT_TRUE(found.has_value());
                   EXPECT_TRUE(*found == x || *found == Bytes(x.begin(), x.begin() + 17000));
                 }});
}

TEST_F(StripedKill, Rename) {
  for (const Regions& regions : {three, beside, mixed})
    for (const char* goal : {"d/to", "e/to"})
      at_every_call({[&] { make("d/from", regions, x); },
                     [&] { return rename_file(path("d/from"), path(goal)); },
                     [&] {
                       const auto from = contents("d/from");
                       const auto to = contents(goal);
                       EXPECT_NE(from.has_value(), to.has_value());
                       EXPECT_EQ(from ? *from : *to, x);
                     }});
}

TEST_F(StripedKill, RenameOverAnother) {
  for (const Regions& regions : {three, mixed})
    for (const char* goal : {"d/to", "e/to"})
      at_every_call({[&] {
                       make("d/from", regions, x);
                       make(goal, mixed, y);
                     },
                     [&] { return rename_file(path("d/from"), path(goal)); },
                     [&] {
                       const auto from = contents("d/from");
                       const auto to = contents(goal);
                       ASSERT_TRUE(to.has_value());
                       EXPECT_EQ(*to, from ? y : x);
                       if (from) {
                         EXPECT_EQ(*from, x);
                       }
                     }});
}

TEST_F(StripedKill, PlainOverStriped) {
  at_every_call({[&] {
                   make("d/to", mixed, y);
                   std::ofstream(path("d/from")) << "plain";
                 },
                 [&] { return rename_file(path("d/from"), path("d/to")); },
                 [&] {
                   const auto from = contents("d/from");
                   const Bytes plain{'p', 'l', 'a', 'i', 'n'};
                   EXPECT_EQ(contents("d/to"), from ? y : plain);
                 }});
}

TEST_F(StripedKill, Permissions) {
  at_every_call({[&] { make("d/f", mixed, x); }, [&] { return set_permissions(path("d/f"), 0600); },
                 [&] { EXPECT_EQ(contents("d/f"), x); }});
}
// --- write --------------------------------------------------------------------------------------

class WriteKill : public StripedKill {
 protected:
  static constexpr std::size_t begin = 5000;
  static constexpr std::size_t len = 28000;

  Case write_case() {
    return {[&] { make("d/f", cut, x); }, [&] { return write(); }, [&] { check(); }};
  }
  Status write() {
    SHIMA_TRY_ASSIGN(auto file, LogicalFile::open({.path = path("d/f"), .write = true}));
    return file.write(FileOffset{begin}, y_and_more_.data(), len);
  }
  void check() {
    const auto found = contents("d/f");
    ASSERT_TRUE(found.has_value());
    ASSERT_EQ(found->size(), x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const bool inside = i >= begin && i < begin + len;
      ASSERT_TRUE((*found)[i] == x[i] || (inside && (*found)[i] == y_and_more_[i - begin])) << i;
    }
  }
  Bytes y_and_more_ = some_bytes(len, 5);
};

TEST_F(WriteKill, AtEveryCall) { at_every_call(write_case()); }
TEST_F(WriteKill, AtRandomTimes) { at_random_times(write_case(), 100); }

}  // namespace
}  // namespace shima
