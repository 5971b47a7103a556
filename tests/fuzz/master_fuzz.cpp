// Hostile master files with valid checksums: decode_master refuses them, or returns a description
// that refers to nothing but targets, has a layout, and is encoded to the same bytes.
//
// SHIMA_FUZZ_ROUNDS sets the number of rounds.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <random>

#include "layout/master_file.h"

namespace shima {
namespace {

using Random = std::mt19937_64;

std::size_t pick(Random& random, std::size_t count) { return random() % count; }

// The last line as docs/format.md defines it, computed independently of the code under test.
std::string sealed(const std::string& body) {
  std::uint64_t sum = 0xcbf29ce484222325U;
  for (const char c : body) sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  std::array<char, 32> end{};
  std::snprintf(end.data(), end.size(), "end %016llx\n", static_cast<unsigned long long>(sum));
  return body + end.data();
}

std::string random_word(Random& random) {
  static const std::array<std::string, 26> words{"id",
                                                 "region",
                                                 "unit",
                                                 "targets",
                                                 "intent",
                                                 "truncate",
                                                 "remove",
                                                 "replace",
                                                 "0",
                                                 "1",
                                                 "65536",
                                                 "-1",
                                                 "18446744073709551615",
                                                 "9223372036854775807",
                                                 "1099511627776",
                                                 "a",
                                                 "b",
                                                 "beside",
                                                 "../b",
                                                 "/etc",
                                                 "..",
                                                 "end",
                                                 "#",
                                                 "0x10",
                                                 std::string(32, '0'),
                                                 std::string(70, 'n')};
  if (pick(random, 20) != 0) return words[pick(random, words.size())];
  std::string word(pick(random, 12), ' ');
  for (char& c : word) c = static_cast<char>(random());
  return word;
}

std::string random_lines(Random& random) {
  std::string text = "shima striped file, format 1\n";
  if (pick(random, 3) != 0) text += "id 0123456789abcdef0123456789abcdef\n";
  if (pick(random, 3) != 0) text += "region 0 unit 4096 targets a b\n";
  for (std::size_t line = pick(random, 4); line > 0; --line) {
    if (pick(random, 2) == 0) text += "region ";
    for (std::size_t i = pick(random, 9); i > 0; --i) text += random_word(random) + " ";
    text += "\n";
  }
  return text;
}

void check(const std::string& text) {
  const auto master = decode_master(text);
  if (!master) return;
  EXPECT_TRUE(is_file_id(master->id.hex));
  for (const std::string& name : master->targets()) EXPECT_TRUE(is_target_name(name)) << name;
  const auto* replaced = master->intent ? std::get_if<ReplaceIntent>(&*master->intent) : nullptr;
  if (replaced != nullptr) {
    for (const std::string& name : replaced->targets) EXPECT_TRUE(is_target_name(name)) << name;
  }
  const auto layout = layout_of(*master);
  ASSERT_TRUE(layout.has_value());
  EXPECT_EQ(layout->subfile_count(), std::ssize(master->targets()));
  EXPECT_EQ(decode_master(encode_master(*master)).value(), *master);
}

TEST(MasterFuzz, EverySealedTextIsRefusedOrHarmless) {
  const char* wanted = std::getenv("SHIMA_FUZZ_ROUNDS");
  const int rounds = wanted != nullptr ? std::atoi(wanted) : 20000;
  int accepted = 0;
  for (int seed = 1; seed <= rounds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(static_cast<std::uint64_t>(seed));
    const std::string text = sealed(random_lines(random));
    accepted += decode_master(text).has_value() ? 1 : 0;
    check(text);
    if (HasFailure()) return;
  }
  EXPECT_GT(accepted, rounds / 100);  // otherwise the texts are too damaged to test anything
}

}  // namespace
}  // namespace shima
