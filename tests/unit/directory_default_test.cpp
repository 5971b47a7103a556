// How a directory's default is read, and the precedence over it; paths as words; names of drafts.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "file/hints/directory_default.h"
#include "layout/master_file.h"
#include "store/target/text_file.h"
#include "tool/common/progress.h"
#include "tool/files/stripe_options.h"

namespace shima {
namespace {

TEST(DirectoryDefault, IsReadAsHints) {
  const auto hints =
      parse_directory_default("# comment\n\n striping_unit = 64K # more\nshima_targets=a,b\n");
  ASSERT_TRUE(hints.has_value());
  EXPECT_EQ(hints->striping_unit, 65536U);
  EXPECT_EQ(hints->shima_targets, "a,b");
  EXPECT_EQ(parse_directory_default(encode_directory_default(*hints)).value(), *hints);
  for (const char* bad : {"striping_unit", "cb_nodes=2", "striping_unit=x", "=1", "x=1"})
    EXPECT_FALSE(parse_directory_default(bad).has_value()) << bad;
}

TEST(DirectoryDefault, WhatIsSaidWins) {
  const auto directory =
      std::filesystem::temp_directory_path() / ("shima_default_" + std::to_string(::getpid()));
  std::filesystem::create_directory(directory);
  Hints said;
  said.striping_unit = 4096;
  const std::string path = (directory / "file").string();
  EXPECT_EQ(with_directory_default(said, path), said);
  std::ofstream(directory / directory_default_name) << "striping_unit=1M\nstriping_factor=3\n";
  const Hints both = with_directory_default(said, path);
  EXPECT_EQ(both.striping_unit, 4096U);
  EXPECT_EQ(both.striping_factor, 3);
  std::ofstream(directory / directory_default_name) << "nonsense\n";
  EXPECT_EQ(with_directory_default(said, path), said);
  std::filesystem::remove_all(directory);
}

TEST(PathWord, EveryPathIsOneWord) {
  for (const std::string path : {"/a/b", "/a b/%c\n\x01\xff", "/"}) {
    const std::string word = encode_path(path);
    EXPECT_EQ(word.find_first_of(" \n"), std::string::npos);
    EXPECT_EQ(decode_path(word), path);
  }
  for (const char* bad : {"", "a/b", "/%", "/%4", "/%zz", "/%00"})
    EXPECT_FALSE(decode_path(bad).has_value()) << bad;
  EXPECT_FALSE(decode_path("/" + std::string(5000, 'a')).has_value());
}

TEST(MoveIntent, IsReadBack) {
  MasterFile master{{std::string(32, 'a')}, {{{0}, 4096, {"d0", "beside"}}}, {}};
  for (const std::optional<ReplaceIntent>& replaced :
       {std::optional<ReplaceIntent>{},
        std::optional<ReplaceIntent>{{{std::string(32, 'b')}, {"d1"}}}}) {
    master.intent = MoveIntent{"/from here", "/to\nthere", replaced};
    EXPECT_EQ(decode_master(encode_master(master)).value(), master);
  }
}

TEST(DraftName, IsToldApart) {
  EXPECT_TRUE(is_draft_name(".name.shima-0123abcd"));
  EXPECT_EQ(goal_of_draft(".name.shima-0123abcd"), "name");
  EXPECT_EQ(goal_of_draft(".a.shima-00000000.shima-0123abcd"), "a.shima-00000000");
  for (const char* other : {"", ".", ".shima-0123abcd", "name.shima-0123abcd",
                            ".name.shima-0123abc", ".name.shima-0123abcx", ".shima-default"})
    EXPECT_FALSE(is_draft_name(other)) << other;
}

TEST(StripeOption, BecomesHints) {
  const auto hints =
      tool::stripe_hints({.stripe = "unit=64K,targets=4,order=a+b", .order = {}, .regions = {}});
  ASSERT_TRUE(hints.has_value());
  EXPECT_EQ(hints->striping_unit, 65536U);
  EXPECT_EQ(hints->striping_factor, 4);
  EXPECT_EQ(hints->shima_targets, "a,b");
  const auto cut =
      tool::stripe_hints({.stripe = "unit=4K,targets=2", .order = {}, .regions = {"64K:1M:4"}});
  EXPECT_EQ(cut->shima_regions, "0:4096:2,64K:1M:4");
  EXPECT_EQ(
      tool::stripe_hints({.stripe = "targets=a+b", .order = {}, .regions = {}})->shima_targets,
      "a,b");
  for (const char* bad : {"unit", "unit=", "unit=x", "targets=0", "unit=0K", "a=b", "unit=1,,"})
    EXPECT_FALSE(tool::stripe_hints({.stripe = bad, .order = {}, .regions = {}}).has_value())
        << bad;
}

TEST(ProgressLine, SaysHowFarAndHowLong) {
  EXPECT_EQ(tool::progress_line("x", 0, 0, 0), "x  [########################] 100 %  0 B of 0 B");
  EXPECT_EQ(
      tool::progress_line("copying f", 1 << 30, std::uint64_t{2} << 30, 2),
      "copying f  [############            ]  50 %  1.0 GiB of 2.0 GiB  512.0 MiB/s  2 s left");
}

}  // namespace
}  // namespace shima
