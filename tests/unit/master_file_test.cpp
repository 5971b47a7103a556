// The master file: decoding returns what was encoded, and other files are not accepted as one.
#include <gtest/gtest.h>

#include <random>

#include "layout/master_file.h"

namespace shima {
namespace {

const std::string some_id = "0123456789abcdef0123456789abcdef";

MasterFile example() {
  return {{some_id}, {{{0}, 65536, {"ssd"}}, {{65536}, 1048576, {"d0", "d1", "beside", "d0"}}}, {}};
}

TEST(MasterFile, WhatIsWrittenIsReadBack) {
  MasterFile master = example();
  const std::string other(32, 'f');
  for (const std::optional<Intent>& intent :
       {std::optional<Intent>{}, std::optional<Intent>{TruncateIntent{12345}},
        std::optional<Intent>{RemoveIntent{}},
        std::optional<Intent>{ReplaceIntent{{other}, {"d1", "d2"}}}}) {
    master.intent = intent;
    const auto found = decode_master(encode_master(master));
    ASSERT_TRUE(found.has_value()) << found.error().what;
    EXPECT_EQ(*found, master);
  }
  EXPECT_EQ(layout_of(master).value().subfile_count(), 5);
  EXPECT_EQ(master.targets(), (std::vector<std::string>{"ssd", "d0", "d1", "beside", "d0"}));
}

TEST(MasterFile, EveryTornOrChangedOneIsRefused) {
  const std::string text = encode_master(example());
  for (std::size_t len = 0; len < text.size(); ++len)
    EXPECT_FALSE(decode_master(text.substr(0, len)).has_value()) << len;
  std::mt19937 random(1);
  for (int i = 0; i < 5000; ++i) {
    std::string changed = text;
    char& c = changed[random() % changed.size()];
    const char before = c;
    c = static_cast<char>(random() % 256);
    EXPECT_EQ(decode_master(changed).has_value(), c == before) << changed;
  }
}

// A file that is changed in place has the new text after the old one.
TEST(MasterFile, TheLastWholeTextCounts) {
  MasterFile changed = example();
  changed.intent = TruncateIntent{12345};
  const std::string before = encode_master(example());
  const std::string after = encode_master(changed);
  for (std::size_t len = 0; len < after.size(); ++len)
    EXPECT_EQ(decode_master(before + after.substr(0, len)).value(), example()) << len;
  EXPECT_EQ(decode_master(before + after).value(), changed);
  EXPECT_EQ(decode_master(before + after + before).value(), example());
  EXPECT_EQ(decode_master(before + after + std::string(100, '\0')).value(), changed);
  for (const std::string& other :
       {std::string("results"), std::string(100, '\0') + "results", std::string("\n")})
    EXPECT_FALSE(decode_master(before + other).has_value());
}

// With a correct checksum, which an attacker can compute.
std::string sealed(const std::string& lines) {
  const std::string valid = encode_master(example());
  const std::string head = valid.substr(0, valid.find('\n') + 1);
  std::string body = head + lines;
  std::uint64_t sum = 0xcbf29ce484222325U;
  for (const char c : body) sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  char end[32];
  std::snprintf(end, sizeof end, "end %016llx\n", static_cast<unsigned long long>(sum));
  return body + end;
}

TEST(MasterFile, HostileOnesAreRefused) {
  const std::string id = "id " + some_id + "\n";
  ASSERT_TRUE(decode_master(sealed(id + "region 0 unit 1 targets a\n")).has_value());
  std::string many;
  for (int i = 0; i < 5000; ++i) many += " a";
  for (const std::string& lines : std::initializer_list<std::string>{
           "",
           id,
           "region 0 unit 1 targets a\n",
           id + id + "region 0 unit 1 targets a\n",
           id + "region 0 unit 1 targets\n",
           id + "region 0 unit 1 targets ../a\n",
           id + "region 0 unit 1 targets /etc\n",
           id + "region 0 unit 1 targets .\n",
           id + "region 0 unit 1 targets a/b\n",
           id + "region 0 unit 0 targets a\n",
           id + "region 0 unit -1 targets a\n",
           id + "region 0 unit 99999999999999999999 targets a\n",
           id + "region 1 unit 1 targets a\n",
           id + "region -1 unit 1 targets a\n",
           id + "region 0 unit 1 targets a\nregion 0 unit 1 targets b\n",
           id + "region 0 unit 1 targets a\nregion 9 unit 1 targets b\nregion 5 unit 1 targets c\n",
           id + "region 0 unit 1 targets" + many + "\n",
           id + "region 0 unit 1 targets " + std::string(65, 'a') + "\n",
           id + "region 0 unit 1 targets a\nintent truncate -1\n",
           id + "region 0 unit 1 targets a\nintent truncate 9223372036854775808\n",
           id + "region 0 unit 1 targets a\nintent remove\nintent remove\n",
           id + "region 0 unit 1 targets a\nintent replace ../x targets a\n",
           id + "region 0 unit 1 targets a\nunknown 1\n",
           id + "region 0 unit 1 targets a\n\n",
           "id 0123456789ABCDEF0123456789abcdef\nregion 0 unit 1 targets a\n",
           "id ../456789abcdef0123456789abcdef00\nregion 0 unit 1 targets a\n",
       })
    EXPECT_FALSE(decode_master(sealed(lines)).has_value()) << lines.substr(0, 200);
}

TEST(MasterFile, ALaterFormatIsNamed) {
  std::string text = encode_master(example());
  text.replace(text.find("format 1"), 8, "format 2");
  const auto found = decode_master(text);
  ASSERT_FALSE(found.has_value());
  EXPECT_NE(found.error().what.find("format 2"), std::string::npos);
}

}  // namespace
}  // namespace shima
