// TIMEOUT: 120
// Tasks leave nothing behind: no mapping, file, process or number stays in use, however many tasks
// a space has had. `many_spawns COUNT` starts COUNT tasks (default 2000); the soak test starts very
// many. The test program is its own worker (worker.h).
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#include "pvas/aftermath.h"
#include "shima/pvas.h"

namespace {

long rounds = 500;               // of four tasks each
constexpr int own_mappings = 8;  // mapped at times in the root, or in the waiting task

int do_work(const std::string& work) {
  if (work == "wait")
    for (;;) pause();
  static int shown = 0;
  const std::string name = "of " + std::to_string(pvas_self());
  MUST(pvas_export(name.c_str(), &shown, sizeof shown) == 0);
  MUST(pvas_hold(0) == 0);  // released when the task ends
  return 0;
}

class ManySpawns : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(pvas_create(nullptr, &space_), 0) << pvas_error_message();
    stays_ = spawn("wait");
    end_well(spawn("end"));
    root_ = parent_of(pvas_process(space_, stays_));
  }
  void TearDown() override { pvas_destroy(space_); }

  int spawn(const char* work) {
    static const std::string path = own_path();
    char* arguments[] = {const_cast<char*>("worker"), const_cast<char*>(work), nullptr};
    pvas_program program{};
    program.file = path.c_str();
    program.arguments = arguments;
    int task = -1;
    EXPECT_EQ(pvas_spawn(space_, &program, &task), 0) << pvas_error_message();
    return task;
  }

  void end_well(int task) {
    int status = -1;
    ASSERT_EQ(pvas_wait(space_, task, -1, &status), 0) << pvas_error_message();
    ASSERT_EQ(status, 0) << "exit code " << WEXITSTATUS(status);
  }

  void spawn_four() {
    std::array<int, 4> tasks{};
    for (int& task : tasks) task = spawn("end");
    for (const int task : tasks) {
      ASSERT_LT(task, 16) << "numbers of tasks that are no more are not used again";
      ASSERT_NO_FATAL_FAILURE(end_well(task));
    }
  }

  [[nodiscard]] int mappings() const {
    return lines_of("/proc/" + std::to_string(root_) + "/maps");
  }

  pvas_space* space_ = nullptr;
  int stays_ = -1;
  pid_t root_ = 0;
};

TEST_F(ManySpawns, LeaveTheSpaceAsItWas) {
  for (int round = 0; round < 4; ++round) ASSERT_NO_FATAL_FAILURE(spawn_four());
  ASSERT_TRUE(eventually([&] { return children_of(root_).size() == 1; }));
  const int before = mappings();
  const std::size_t files = open_files_of(root_);
  const std::size_t own_files = open_files_of(getpid());
  ASSERT_GT(before, 10);
  for (long round = 0; round < rounds; ++round) {
    ASSERT_NO_FATAL_FAILURE(spawn_four()) << "round " << round;
    // Live tasks may have up to four tasks' mappings for a while; leaked mappings add up.
    if (round % 1000 == 999) {
      ASSERT_TRUE(eventually([&] { return mappings() <= before + own_mappings; }))
          << before << " mappings became " << mappings() << " in round " << round;
    }
  }
  EXPECT_TRUE(eventually([&] { return mappings() <= before + own_mappings; }))
      << before << " mappings became " << mappings();
  EXPECT_TRUE(eventually([&] { return open_files_of(root_) <= files; }))
      << files << " files became " << open_files_of(root_);
  EXPECT_TRUE(eventually([&] { return children_of(root_).size() == 1; }));
  EXPECT_EQ(open_files_of(getpid()), own_files);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[0]) == "worker") return do_work(argv[1]);
  testing::InitGoogleTest(&argc, argv);
  if (argc == 2) rounds = std::atol(argv[1]) / 4;
  return RUN_ALL_TESTS();
}
