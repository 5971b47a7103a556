// For tests that kill: the workers, and the check of what is left afterwards: no process, no
// zombie, no open file, no socket name. The test program is its own worker (worker.h).
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <map>
#include <random>

#include "pvas/aftermath.h"
#include "shima/pvas.h"

namespace kill_workers {

using namespace std::chrono_literals;

// ---- workers -----------------------------------------------------------------------------------

std::atomic<bool> asked_to_end{false};

int start_own(const char* work) {
  pvas_space* space = nullptr;
  if (pvas_own(&space) != 0) return -1;
  static const std::string path = own_path();
  char* arguments[] = {const_cast<char*>("worker"), const_cast<char*>(work), nullptr};
  pvas_program program{};
  program.file = path.c_str();
  program.arguments = arguments;
  int task = -1;
  pvas_spawn(space, &program, &task);
  return task;  // the handle stays, and with it the task
}

// Repeats every operation that changes shared state.
int change() {
  static int shown = 0;
  const std::string name = "of " + std::to_string(pvas_self());
  for (int round = 0;; ++round) {
    void* address = nullptr;
    int owner = -1;
    MUST(pvas_export(name.c_str(), &shown, sizeof shown) == 0);
    if (pvas_import("steady", 0, &address, nullptr, &owner) == 0 && pvas_hold(owner) == 0)
      MUST(pvas_release(owner) == 0);
    void* const mapped =
        mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(mapped != MAP_FAILED && munmap(mapped, 1 << 20) == 0);
    if (round % 8 == 7) MUST(start_own("wait") >= 0);
    MUST(pvas_withdraw(name.c_str()) == 0);
  }
}

// Checks its memory continuously; 0 if no other task has changed it.
int keep_memory() {
  std::signal(SIGTERM, [](int) { asked_to_end = true; });
  constexpr std::size_t words = std::size_t{1} << 18;
  const std::unique_ptr<std::uint64_t[]> mine(new std::uint64_t[words]);
  for (std::size_t i = 0; i < words; ++i) mine[i] = i * i;
  MUST(pvas_export("steady", mine.get(), words * sizeof(std::uint64_t)) == 0);
  while (!asked_to_end) {
    for (std::size_t i = 0; i < words; ++i) MUST(mine[i] == i * i);
    std::this_thread::sleep_for(1ms);
  }
  return pvas_tasks(nullptr, 0) == 1 ? 0 : 250;
}

int wait_for_ever() {
  for (;;) pause();
}

int see_steady() {
  void* address = nullptr;
  MUST(pvas_import("steady", 20000, &address, nullptr, nullptr) == 0);
  MUST(static_cast<std::uint64_t*>(address)[9] == 81);
  return 0;
}

const std::map<std::string, int (*)()> works{
    {"change", change}, {"keep", keep_memory}, {"wait", wait_for_ever}, {"see", see_steady}};

// ---- the tests ---------------------------------------------------------------------------------

int spawn_in(pvas_space* space, const char* work, int* task) {
  static const std::string path = own_path();
  char* arguments[] = {const_cast<char*>("worker"), const_cast<char*>(work), nullptr};
  pvas_program program{};
  program.file = path.c_str();
  program.arguments = arguments;
  return pvas_spawn(space, &program, task);
}

void sleep_at_most(std::mt19937& dice, unsigned most_us) {
  std::this_thread::sleep_for(
      std::chrono::microseconds(std::uniform_int_distribution<unsigned>(0, most_us)(dice)));
}

std::string own_sockets() { return "-" + std::to_string(getpid()) + "-"; }

class Kill : public testing::Test {
 protected:
  void SetUp() override { files_ = open_files_of(getpid()); }

  void expect_nothing_left() const {
    EXPECT_TRUE(eventually(no_process_is_left)) << "there are still" << names_of_children();
    EXPECT_EQ(sockets_named(own_sockets()), 0);
    EXPECT_EQ(open_files_of(getpid()), files_);
  }

 private:
  std::size_t files_ = 0;
};

inline int run_kill_tests(int argc, char** argv) {
  if (argc == 2 && works.contains(argv[1])) return works.at(argv[1])();
  adopt_orphans();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

}  // namespace kill_workers
