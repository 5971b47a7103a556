// A trace that the program pauses: what begins meanwhile is not in it, and what is under way is.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "observe/trace_log.h"

namespace shima {
namespace {

void end(const Traced& traced) {
  if (traced.on()) traced.end({call::file_sync, nullptr}, plain_event());
}

TEST(TraceLog, LeavesOutWhatBeginsWhilePaused) {
  std::string directory = "trace-XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  ::setenv(trace_variable, directory.c_str(), 1);

  pause_trace();
  start_trace(0, 1);
  EXPECT_FALSE(is_traced());
  EXPECT_NE(trace::file_number("/opened/meanwhile"), 0);
  std::optional<Traced> begun(std::in_place);
  resume_trace();
  resume_trace();
  EXPECT_TRUE(is_traced());
  end(*begun);
  EXPECT_EQ(trace::room().used, 0U);
  end(Traced{});
  EXPECT_EQ(trace::room().used, 1U);

  begun.emplace();
  pause_trace();
  end(*begun);
  EXPECT_EQ(trace::room().used, 2U);
  end(Traced{});
  EXPECT_EQ(trace::room().used, 2U);

  // Decided when the program began the call, at another time.
  end(Traced(Tracing::yes));
  EXPECT_EQ(trace::room().used, 3U);
  resume_trace();
  end(Traced(Tracing::no));
  EXPECT_EQ(trace::room().used, 3U);

  pause_trace();
  const pid_t child = ::fork();
  if (child == 0) {
    resume_trace();
    ::_exit(is_traced() || Traced(Tracing::yes).on() ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "a forked process is not traced";
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace shima
