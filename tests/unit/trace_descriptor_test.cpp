// A program that closes all descriptors may open a file of its own under the number of its trace
// file. The trace ends then; the program's file stays as it is.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "observe/trace_log.h"

namespace shima {
namespace {

// The descriptor of a file whose name ends so; -1: none.
int descriptor_of(const std::string& end) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (target.ends_with(end)) return std::stoi(entry.path().filename());
  }
  return -1;
}

std::string contents_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void add_events(int count) {
  for (int i = 0; i < count; ++i) {
    const Traced traced;
    traced.end({call::file_sync, nullptr}, plain_event());
  }
}

TEST(TraceLog, LeavesAnotherFileUnderItsDescriptorAlone) {
  std::string directory = "trace-XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  ::setenv(trace_variable, directory.c_str(), 1);
  start_trace(0, 1);
  add_events(10);
  const int trace = descriptor_of(".trace");
  ASSERT_GE(trace, 0);
  const std::string path = directory + "/data";
  const std::string data(3 << 20, 'd');
  std::ofstream(path, std::ios::binary) << data;
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(::dup2(file, trace), 0);
  add_events(20'000);  // more than there was room for
  EXPECT_EQ(contents_of(path), data);
  EXPECT_LT(trace::room().all, 20'000U);
  ::close(file);
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace shima
