// The text of files, also of those that can be opened but not read.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/file_text.h"

namespace shima {
namespace {

TEST(FileText, IsThatOfTheFile) {
  const std::string path = testing::TempDir() + "shima_file_text." + std::to_string(::getpid());
  for (const std::size_t len : {0, 1, 16 << 10, (16 << 10) + 1, 100'000}) {
    const std::string text(len, 'x');
    std::ofstream(path) << text;
    EXPECT_EQ(file_text(path).value_or("-"), text);
  }
  std::filesystem::remove(path);
}

TEST(FileText, IsThatOfAFileOfUnknownLength) {
  const auto text = file_text("/proc/self/status");
  ASSERT_TRUE(text);
  EXPECT_TRUE(text->starts_with("Name:"));
}

TEST(FileText, IsAnErrorWithItsNumber) {
  EXPECT_EQ(file_text("/no/such/file").error().sys_errno, ENOENT);
  EXPECT_EQ(file_text("/proc").error().sys_errno, EISDIR);
  EXPECT_EQ(file_text("/proc/self/mem").error().sys_errno, EIO);
}

}  // namespace
}  // namespace shima
