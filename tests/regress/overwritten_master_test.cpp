// Programs that do not use Shima open a striped file and write into its master file: fsck restores
// the striped file, and keeps the data that they wrote.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <iterator>

#include "base/unique_fd.h"
#include "striped_world.h"

namespace shima {
namespace {

const Bytes text = some_bytes(40000, 1);
const std::string short_data = "results of another program\n";
const std::string long_data(5000, 'x');

void write_at(const std::string& path, int flags, off_t at, const std::string& data) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | flags));
  ASSERT_EQ(::pwrite(fd.get(), data.data(), data.size(), at), std::ssize(data));
}

std::string whole(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_F(StripedWorld, AFileOverwrittenByANativeProgramIsRebuilt) {
  const std::vector<std::function<void(const std::string&)>> programs{
      [](const auto& path) { write_at(path, O_TRUNC, 0, short_data); },
      [](const auto& path) { write_at(path, 0, 0, short_data); },
      [](const auto& path) { write_at(path, 0, 0, long_data); },
      [](const auto& path) { write_at(path, 0, 100, short_data); },
      [](const auto& path) { write_at(path, O_APPEND, 0, short_data); },
      [](const auto& path) { write_at(path, 0, 8192, short_data); },
      [](const auto& path) { ASSERT_EQ(::truncate(path.c_str(), 0), 0); },
      [](const auto& path) { ASSERT_EQ(::truncate(path.c_str(), 100), 0); },
  };
  for (const Regions& regions : {three, mixed})
    for (std::size_t i = 0; i < programs.size(); ++i) {
      SCOPED_TRACE(i);
      new_world();
      make("d/f", regions, text);
      make("d/other", regions, text);
      programs[i](path("d/f"));
      const std::string written = whole(path("d/f"));
      const auto report = check_files({path("d")});
      ASSERT_TRUE(report.has_value());
      ASSERT_EQ(report->findings.size(), 1U);
      EXPECT_EQ(report->findings[0].problem, Problem::overwritten_master);
      EXPECT_TRUE(check_files({path("d"), true}).has_value());
      EXPECT_EQ(contents("d/f"), text);
      EXPECT_EQ(contents("d/other"), text);
      int saved = 0;
      for (const auto& entry : std::filesystem::directory_iterator(path("d"))) {
        if (entry.path().filename().string().find(".overwritten-") == std::string::npos) continue;
        ++saved;
        EXPECT_EQ(whole(entry.path()), written);
      }
      EXPECT_EQ(saved, written.empty() ? 0 : 1);
      EXPECT_EQ(findings(false).find("/f:"), std::string::npos) << findings(false);
    }
}

}  // namespace
}  // namespace shima
