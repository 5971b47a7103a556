// TIMEOUT: 240
// Delegation between tasks of one space. The test program is its own worker: started as a task with
// the name of a role, it exits with 0 or the number of the line that failed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "shima/delegate.h"

namespace {

using namespace std::chrono_literals;

#define MUST(condition)                                 \
  do {                                                  \
    if (!(condition)) return (__LINE__ - 30) % 200 + 1; \
  } while (false)

enum Operation : int { sum = DELEGATE_FIRST_OPERATION, fill, later, refuse, stop };

constexpr std::int64_t share = 1 << 17;  // bytes of the file for each task

// ---- workers -----------------------------------------------------------------------------------

std::int64_t sum_of(const unsigned char* data, std::size_t size) {
  std::int64_t all = 0;
  for (std::size_t i = 0; i < size; ++i) all += static_cast<std::int64_t>(i + 1) * data[i];
  return all;
}

std::int64_t do_sum(void*, const delegate_job* job) {
  return sum_of(static_cast<unsigned char*>(job->data), job->size);
}

std::int64_t do_fill(void*, const delegate_job* job) {
  std::memset(job->data, static_cast<int>(job->arguments[0]), job->size);
  return static_cast<std::int64_t>(job->size);
}

// A separate thread answers, possibly before this returns.
std::int64_t do_later(void* context, const delegate_job* job) {
  std::thread([desk = static_cast<delegate_desk*>(context), job = *job] {
    delegate_finish(desk, &job, job.requester);
  }).detach();
  return DELEGATE_LATER;
}

std::int64_t do_refuse(void*, const delegate_job*) { return -EDQUOT; }

std::int64_t do_stop(void* context, const delegate_job*) {
  delegate_stop(static_cast<delegate_desk*>(context));
  return 1;
}

int serve() {
  static int file = open("file", O_RDWR | O_CREAT, 0600);
  MUST(file >= 0);
  MUST(pvas_export("file", &file, sizeof file) == 0);
  const delegate_options options{.seats = 3, .spin_us = 0, .inline_bytes = 0, .group = 0};
  delegate_desk* desk = nullptr;
  MUST(delegate_open("desk", &options, &desk) == 0);
  delegate_desk* second = nullptr;
  MUST(delegate_open("desk", &options, &second) == PVAS_ERR_EXISTS);
  MUST(delegate_offer(desk, DELEGATE_FILE_READ, do_sum, nullptr) == PVAS_ERR_ARGUMENT);
  MUST(delegate_offer(desk, 256, do_sum, nullptr) == PVAS_ERR_ARGUMENT);
  MUST(delegate_offer(desk, sum, do_sum, nullptr) == 0);
  MUST(delegate_offer(desk, fill, do_fill, nullptr) == 0);
  MUST(delegate_offer(desk, later, do_later, desk) == 0);
  MUST(delegate_offer(desk, refuse, do_refuse, nullptr) == 0);
  MUST(delegate_offer(desk, stop, do_stop, desk) == 0);
  MUST(delegate_serve(desk, -1) > 0);
  delegate_close(desk);
  return 0;
}

std::int64_t call(delegate_seat* seat, int operation, void* data = nullptr, std::size_t size = 0,
                  delegate_direction direction = DELEGATE_OUT, std::int64_t argument = 0) {
  const delegate_request request{operation, {argument, 0, 0}, data, size, direction};
  return delegate_call(seat, &request);
}

int join(delegate_seat** seat) { return delegate_join("desk", 20000, nullptr, seat); }

// Payloads on the stack, on the heap and in a global, small and large, in both directions.
int exchange(delegate_seat* seat, int file, std::mt19937& dice) {
  static unsigned char global[3000];
  unsigned char stack[700];
  std::vector<unsigned char> heap(std::uniform_int_distribution<std::size_t>(1, 90000)(dice));
  const std::array<std::pair<unsigned char*, std::size_t>, 3> places{
      {{global, sizeof global}, {stack, sizeof stack}, {heap.data(), heap.size()}}};
  const std::int64_t begin = pvas_self() * share;
  for (const auto& [data, size] : places) {
    for (std::size_t i = 0; i < size; ++i) data[i] = static_cast<unsigned char>(dice());
    const std::vector<unsigned char> wanted(data, data + size);
    const auto count = static_cast<std::int64_t>(size);
    MUST(delegate_write(seat, file, data, size, begin) == count);
    MUST(call(seat, sum, data, size) == sum_of(data, size));
    MUST(call(seat, fill, data, size, DELEGATE_IN, 0x5a) == count);
    MUST(data[0] == 0x5a && data[size - 1] == 0x5a);
    MUST(delegate_read(seat, file, data, size, begin) == count);
    MUST(std::memcmp(data, wanted.data(), size) == 0);
  }
  MUST(call(seat, later) == pvas_self());
  return 0;
}

int file_number() {
  void* address = nullptr;
  if (pvas_import("file", 20000, &address, nullptr, nullptr) != 0) return -1;
  return *static_cast<int*>(address);
}

int ask() {
  delegate_seat* seat = nullptr;
  MUST(join(&seat) == 0);
  std::mt19937 dice(static_cast<unsigned>(pvas_self()));
  const int file = file_number();
  for (int round = 0; round < 40; ++round)
    if (const int line = exchange(seat, file, dice)) return line;
  MUST(delegate_sync(seat, file) == 0);
  delegate_leave(seat);
  return 0;
}

int ask_until_lost() {
  delegate_seat* seat = nullptr;
  const int joined = delegate_join("desk", 3000, nullptr, &seat);
  if (joined == PVAS_ERR_LOST || joined == PVAS_ERR_TIMEOUT) return 0;  // its name is removed
  MUST(joined == 0);
  unsigned char data[5000] = {};
  std::int64_t answer = 0;
  while (answer >= 0) answer = call(seat, sum, data, sizeof data / (1 + answer % 9));
  MUST(answer == PVAS_ERR_LOST);
  MUST(call(seat, sum) == PVAS_ERR_LOST);
  delegate_leave(seat);
  return 0;
}

int ask_for_ever() {
  delegate_seat* seat = nullptr;
  MUST(join(&seat) == 0);
  std::mt19937 dice(static_cast<unsigned>(getpid()));
  const int file = file_number();
  for (;;)
    if (const int line = exchange(seat, file, dice)) return line;
}

int ask_wrongly() {
  delegate_seat* seat = nullptr;
  MUST(delegate_join("no desk", 20, nullptr, &seat) == PVAS_ERR_TIMEOUT);
  MUST(delegate_join(nullptr, 20, nullptr, &seat) == PVAS_ERR_ARGUMENT);
  MUST(join(&seat) == 0);
  unsigned char byte = 0;
  MUST(call(seat, refuse) == PVAS_ERR_IO);
  MUST(std::strstr(pvas_error_message(), "EDQUOT") != nullptr);
  MUST(call(seat, 77) == PVAS_ERR_PROGRAM);
  MUST(call(seat, 0) == PVAS_ERR_ARGUMENT);
  MUST(delegate_call(seat, nullptr) == PVAS_ERR_ARGUMENT);
  MUST(delegate_call(nullptr, nullptr) == PVAS_ERR_ARGUMENT);
  MUST(delegate_write(seat, -1, &byte, 1, 0) == PVAS_ERR_IO);
  MUST(std::strstr(pvas_error_message(), "EBADF") != nullptr);
  MUST(delegate_read(seat, 0, nullptr, 1, 0) == PVAS_ERR_ARGUMENT);
  MUST(delegate_wait(seat, 12345) == PVAS_ERR_ARGUMENT);
  MUST(delegate_test(seat, 12345) == PVAS_ERR_ARGUMENT);
  const delegate_request request{sum, {}, &byte, 1, DELEGATE_OUT};
  std::array<std::uint64_t, 16> numbers{};
  for (std::uint64_t& number : numbers) MUST(delegate_start(seat, &request, &number) == 0);
  std::uint64_t another = 0;
  MUST(delegate_start(seat, &request, &another) == PVAS_ERR_ARGUMENT);
  for (const std::uint64_t number : numbers) {
    MUST(delegate_wait(seat, number) == 0);
    MUST(delegate_wait(seat, number) == PVAS_ERR_ARGUMENT);
  }
  delegate_leave(seat);
  return 0;
}

int ask_to_stop() {
  delegate_seat* seat = nullptr;
  MUST(join(&seat) == 0);
  MUST(call(seat, stop) == 1);
  delegate_leave(seat);
  return 0;
}

const std::map<std::string, int (*)()> works{
    {"serve", serve},       {"ask", ask},           {"lost", ask_until_lost},
    {"ever", ask_for_ever}, {"wrong", ask_wrongly}, {"stop", ask_to_stop},
};

// ---- the tests ---------------------------------------------------------------------------------

class DelegateTasks : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(pvas_create(nullptr, &space_), 0) << pvas_error_message(); }
  void TearDown() override { pvas_destroy(space_); }

  int spawn(const char* what) {
    std::array<char, 4096> path{};
    EXPECT_GT(readlink("/proc/self/exe", path.data(), path.size() - 1), 0);
    char* arguments[] = {path.data(), const_cast<char*>(what), nullptr};
    pvas_program program{};
    program.file = path.data();
    program.arguments = arguments;
    int task = -1;
    EXPECT_EQ(pvas_spawn(space_, &program, &task), 0) << pvas_error_message();
    return task;
  }
  int status_of(int task) {
    int status = -1;
    EXPECT_EQ(pvas_wait(space_, task, -1, &status), 0) << pvas_error_message();
    return status;
  }
  void expect_good_end(int task, const char* what) {
    const int status = status_of(task);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
        << what << ": exit code " << WEXITSTATUS(status) << ", signal " << WTERMSIG(status);
  }
  void kill_task(int task) {
    ASSERT_EQ(pvas_signal(space_, task, SIGKILL), 0);
    const int status = status_of(task);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        << "it ended by itself, with " << WEXITSTATUS(status);
  }

  pvas_space* space_ = nullptr;
};

TEST_F(DelegateTasks, MoreRequestersThanSeatsAreServed) {
  const int delegatee = spawn("serve");
  std::array<int, 7> requesters{};
  for (int& requester : requesters) requester = spawn("ask");
  for (const int requester : requesters) expect_good_end(requester, "ask");
  expect_good_end(spawn("wrong"), "wrong");
  expect_good_end(spawn("stop"), "stop");
  expect_good_end(delegatee, "serve");
}

TEST_F(DelegateTasks, ADelegateeThatIsKilledIsAnErrorOfItsRequesters) {
  for (int round = 0; round < 40; ++round) {
    const int delegatee = spawn("serve");
    std::array<int, 2> requesters{};
    for (int& requester : requesters) requester = spawn("lost");
    expect_good_end(spawn("wrong"), "wrong");  // by now it serves
    std::this_thread::sleep_for(std::chrono::microseconds(round * 137 % 3000));
    kill_task(delegatee);
    for (const int requester : requesters) expect_good_end(requester, "lost");
  }
}

TEST_F(DelegateTasks, RequestersThatAreKilledCostNoSeatAndNoPlaceInTheSpace) {
  const int delegatee = spawn("serve");
  for (int round = 0; round < 120; ++round) {
    const std::array<int, 2> victims{spawn("ever"), spawn("ever")};
    std::this_thread::sleep_for(std::chrono::microseconds(round * 173 % 12000));
    for (const int victim : victims) kill_task(victim);
  }
  // A killed requester keeps its number until the delegatee has noticed its death.
  int task = -1;
  for (int i = 0; i < 300 && task != 1; ++i) expect_good_end(task = spawn("ask"), "ask");
  EXPECT_EQ(task, 1) << "numbers of tasks that are no more are not used again";
  expect_good_end(spawn("stop"), "stop");
  expect_good_end(delegatee, "serve");
}

TEST(DelegateNoTask, WhoIsNoTaskCannotTakePart) {
  delegate_desk* desk = nullptr;
  delegate_seat* seat = nullptr;
  EXPECT_EQ(delegate_open("desk", nullptr, &desk), PVAS_ERR_NOT_A_TASK);
  EXPECT_EQ(delegate_join("desk", 0, nullptr, &seat), PVAS_ERR_NOT_A_TASK);
  EXPECT_EQ(delegate_serve(nullptr, 0), PVAS_ERR_ARGUMENT);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && works.contains(argv[1])) return works.at(argv[1])();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
