// TIMEOUT: 240
// Delegation between two spaces of a group: the delegatee is a task of one, the requesters of both.
// The test program is its own worker (worker.h).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <csignal>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "pvas/shared/commons.h"
#include "pvas/worker.h"
#include "shima/delegate_net.h"

namespace {

enum Operation : int { sum = DELEGATE_FIRST_OPERATION, invert, is_shared, stop };

constexpr std::size_t most = 3'000'000;
constexpr std::uint32_t seats = 3;

// ---- workers -----------------------------------------------------------------------------------

std::int64_t sum_of(const unsigned char* data, std::size_t size) {
  std::int64_t all = 0;
  for (std::size_t i = 0; i < size; ++i) all += static_cast<std::int64_t>(i % 101 + 1) * data[i];
  return all;
}

std::int64_t do_sum(void*, const delegate_job* job) {
  return sum_of(static_cast<unsigned char*>(job->data), job->size);
}

std::int64_t do_invert(void*, const delegate_job* job) {
  auto* const data = static_cast<unsigned char*>(job->data);
  for (std::size_t i = 0; i < job->size; ++i) data[i] = static_cast<unsigned char>(~data[i]);
  return static_cast<std::int64_t>(job->size);
}

// Whether the payload was passed by the requester's address.
std::int64_t do_is_shared(void*, const delegate_job* job) {
  const auto at = reinterpret_cast<std::uintptr_t>(job->data);
  return shima::pvas::is_shared({at, job->size}) ? static_cast<std::int64_t>(at) : 0;
}

std::int64_t do_stop(void* context, const delegate_job*) {
  delegate_stop(static_cast<delegate_desk*>(context));
  return 0;
}

int serve() {
  void* file_number = nullptr;
  delegate_desk* desk = nullptr;
  const delegate_options options{.seats = seats, .spin_us = 0, .inline_bytes = 0, .group = 1};
  MUST(pvas_share_alloc(sizeof(int), &file_number) == 0);
  *static_cast<int*>(file_number) = open("file", O_RDWR | O_CREAT, 0600);
  MUST(pvas_export("file", file_number, sizeof(int)) == 0);
  MUST(delegate_open("desk", &options, &desk) == 0);
  MUST(delegate_offer(desk, sum, do_sum, nullptr) == 0);
  MUST(delegate_offer(desk, invert, do_invert, nullptr) == 0);
  MUST(delegate_offer(desk, is_shared, do_is_shared, nullptr) == 0);
  MUST(delegate_offer(desk, stop, do_stop, desk) == 0);
  MUST(delegate_serve(desk, -1) > 0);
  delegate_close(desk);
  MUST(pvas_withdraw("file") == 0);
  MUST(pvas_share_free(file_number) == 0);
  return 0;
}

std::int64_t call(delegate_seat* seat, int operation, std::span<unsigned char> data = {},
                  delegate_direction direction = DELEGATE_OUT) {
  const delegate_request request{operation, {}, data.data(), data.size(), direction};
  return delegate_call(seat, &request);
}

delegate_seat* take_seat() {
  delegate_seat* seat = nullptr;
  return delegate_join("desk", 20000, nullptr, &seat) == 0 ? seat : nullptr;
}

int file_number() {
  void* address = nullptr;
  return pvas_import("file", 20000, &address, nullptr, nullptr) == 0 ? *static_cast<int*>(address)
                                                                     : -1;
}

int exchange(delegate_seat* seat, int file, std::span<unsigned char> data, std::int64_t offset) {
  static std::mt19937 dice(static_cast<unsigned>(getpid()));
  std::vector<unsigned char> wanted(data.size());
  for (unsigned char& byte : wanted) byte = static_cast<unsigned char>(dice());
  std::ranges::copy(wanted, data.begin());
  const auto size = static_cast<std::int64_t>(data.size());
  MUST(call(seat, sum, data) == sum_of(wanted.data(), wanted.size()));
  MUST(call(seat, invert, data, DELEGATE_BOTH) == size);
  for (std::size_t i = 0; i < data.size(); ++i)
    MUST(data[i] == static_cast<unsigned char>(~wanted[i]));
  std::ranges::copy(wanted, data.begin());
  MUST(delegate_write(seat, file, data.data(), data.size(), offset) == size);
  std::ranges::fill(data, 0);
  MUST(delegate_read(seat, file, data.data(), data.size(), offset) == size);
  MUST(std::ranges::equal(data, wanted));
  return 0;
}

// Private memory and shared, small and large.
int ask_rounds(int rounds) {
  delegate_seat* const seat = take_seat();
  const int file = file_number();
  const std::int64_t place = (getpid() % 512) * static_cast<std::int64_t>(most);
  MUST(seat != nullptr && file >= 0);
  void* shared = nullptr;
  MUST(pvas_share_alloc(most, &shared) == 0);
  auto* const there = static_cast<unsigned char*>(shared);
  std::vector<unsigned char> own(most);
  for (int round = 0; rounds == 0 || round < rounds; ++round)
    for (const std::size_t size : {1, 256, 257, 4096, 4097, 70'000, round % 5 == 0 ? 3'000'000 : 0})
      for (unsigned char* const data : {own.data(), there})
        if (const int line = exchange(seat, file, {data, size}, place)) return line;
  MUST(call(seat, is_shared, {there + 5, 5000}) ==
       static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(there + 5)));
  MUST(pvas_share_free(shared) == 0);
  delegate_leave(seat);
  return 0;
}
int ask() { return ask_rounds(20); }
int ask_for_ever() { return ask_rounds(0); }

// Addresses inside a payload are not translated; private addresses of the caller's space are
// invalid.
int ask_wrongly() {
  delegate_seat* const seat = take_seat();
  MUST(seat != nullptr);
  std::vector<unsigned char> own(5000);
  const delegate_piece piece{0, own.data(), own.size()};
  MUST(delegate_write_all(seat, 0, &piece, 1) == PVAS_ERR_ARGUMENT);
  MUST(delegate_expose(seat, own.data(), own.size()) == PVAS_ERR_ARGUMENT);
  const std::int64_t bounced = call(seat, is_shared, own);
  MUST(bounced != 0 &&
       bounced != static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(own.data())));
  delegate_desk* desk = nullptr;
  const delegate_options options{.seats = 1, .spin_us = 0, .inline_bytes = 0, .group = 1};
  MUST(delegate_open("desk", &options, &desk) == PVAS_ERR_EXISTS);
  delegate_leave(seat);
  return 0;
}

int ask_until_lost() {
  delegate_seat* seat = nullptr;
  if (delegate_join("desk", 500, nullptr, &seat) != 0) return 0;  // it was killed before
  std::vector<unsigned char> own(70'000);
  std::int64_t answer = 0;
  for (std::size_t size = 1; answer >= 0; size = size * 3 % own.size())
    answer = call(seat, invert, {own.data(), size}, DELEGATE_BOTH) < 0 ? PVAS_ERR_LOST : 0;
  MUST(call(seat, sum) == PVAS_ERR_LOST);
  delegate_leave(seat);
  return 0;
}

int ask_to_stop() {
  delegate_seat* const seat = take_seat();
  MUST(seat != nullptr && call(seat, stop) == 0);
  delegate_leave(seat);
  return 0;
}

int open_alone() {
  delegate_desk* desk = nullptr;
  const delegate_options options{.seats = 1, .spin_us = 0, .inline_bytes = 0, .group = 1};
  MUST(delegate_open("desk", &options, &desk) == PVAS_ERR_NOT_A_TASK);
  return 0;
}

const std::map<std::string, int (*)()> works{
    {"serve", serve},         {"ask", ask},          {"ever", ask_for_ever}, {"wrong", ask_wrongly},
    {"lost", ask_until_lost}, {"stop", ask_to_stop}, {"alone", open_alone},
};

// ---- the tests ---------------------------------------------------------------------------------

class DelegateGroups : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    static int tests = 0;
    const std::string group =
        "delegate-" + std::to_string(getpid()) + "-" + std::to_string(++tests);
    for (int slice = 0; slice < 2; ++slice) {
      pvas_options options{};
      options.slice = slice;
      options.slices = 2;
      options.group = group.c_str();
      options.eager = GetParam() ? 1 : 0;
      ASSERT_EQ(pvas_create(&options, &spaces_[static_cast<std::size_t>(slice)]), 0)
          << pvas_error_message();
    }
  }
  void TearDown() override {
    for (pvas_space* const space : spaces_) pvas_destroy(space);
  }

  int spawn(std::size_t space, const char* work) {
    char* arguments[] = {const_cast<char*>("worker"), const_cast<char*>(work), nullptr};
    static const std::string path = own_path();
    pvas_program program{};
    program.file = path.c_str();
    program.arguments = arguments;
    int task = -1;
    EXPECT_EQ(pvas_spawn(spaces_[space], &program, &task), 0) << work << pvas_error_message();
    return task;
  }
  int status_of(std::size_t space, int task) {
    int status = -1;
    EXPECT_EQ(pvas_wait(spaces_[space], task, 100000, &status), 0) << pvas_error_message();
    return status;
  }
  int run(std::size_t space, const char* work) { return status_of(space, spawn(space, work)); }
  void kill_task(std::size_t space, int task) {
    EXPECT_EQ(pvas_signal(spaces_[space], task, SIGKILL), 0);
    EXPECT_TRUE(WIFSIGNALED(status_of(space, task)));
  }

  std::array<pvas_space*, 2> spaces_{};
};

INSTANTIATE_TEST_SUITE_P(Lazy, DelegateGroups, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Eager, DelegateGroups, testing::Values(true));

TEST_P(DelegateGroups, RequestersOfBothSpacesAreServed) {
  const int delegatee = spawn(0, "serve");
  std::array<int, 6> requesters{};
  for (std::size_t i = 0; i < requesters.size(); ++i)
    requesters[i] = spawn(i % 3 == 0 ? 0 : 1, "ask");
  for (std::size_t i = 0; i < requesters.size(); ++i)
    EXPECT_EQ(status_of(i % 3 == 0 ? 0 : 1, requesters[i]), 0);
  EXPECT_EQ(run(1, "wrong"), 0);
  EXPECT_EQ(run(1, "stop"), 0);
  EXPECT_EQ(status_of(0, delegatee), 0);
}

TEST_P(DelegateGroups, ADelegateeThatIsKilledIsAnErrorOfTheOtherSpacesRequesters) {
  for (int round = 0; round < 10; ++round) {
    const int delegatee = spawn(0, "serve");
    const std::array<int, 2> requesters{spawn(1, "lost"), spawn(0, "lost")};
    EXPECT_EQ(run(1, "wrong"), 0);
    std::this_thread::sleep_for(std::chrono::microseconds(round * 337 % 3000));
    kill_task(0, delegatee);
    EXPECT_EQ(status_of(1, requesters[0]), 0);
    EXPECT_EQ(status_of(0, requesters[1]), 0);
  }
}

TEST_P(DelegateGroups, RequestersOfTheOtherSpaceThatAreKilledCostNoSeat) {
  const int delegatee = spawn(0, "serve");
  for (int round = 0; round < 15; ++round) {
    const std::array<int, 2> victims{spawn(1, "ever"), spawn(1, "ever")};
    std::this_thread::sleep_for(std::chrono::microseconds(round * 1733 % 25000));
    for (const int victim : victims) kill_task(1, victim);
  }
  EXPECT_EQ(run(1, "ask"), 0);
  EXPECT_EQ(run(1, "stop"), 0);
  EXPECT_EQ(status_of(0, delegatee), 0);
}

TEST(DelegateGroup, ASpaceOfNoGroupHasNoDeskForOne) {
  pvas_space* space = nullptr;
  ASSERT_EQ(pvas_create(nullptr, &space), 0);
  char* arguments[] = {const_cast<char*>("worker"), const_cast<char*>("alone"), nullptr};
  const std::string path = own_path();
  pvas_program program{};
  program.file = path.c_str();
  program.arguments = arguments;
  int task = -1;
  int status = -1;
  ASSERT_EQ(pvas_spawn(space, &program, &task), 0);
  EXPECT_EQ(pvas_wait(space, task, -1, &status), 0);
  EXPECT_EQ(status, 0);
  pvas_destroy(space);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && works.contains(argv[1])) return works.at(argv[1])();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
