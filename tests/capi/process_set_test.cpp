// Process sets: separately started processes meet by their IDs and move random patterns together;
// invalid, dead, foreign and missing members; a member that is killed during a transfer.
//
// The test program starts itself again as each of the members, which read the set's IDs from
// standard input. All members use the same seed, so that each knows what the others do. TIMEOUT:
// 240
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "calm_clock.h"
#include "capi/requests.h"

namespace shima::test {
namespace {

using Bytes = std::vector<unsigned char>;

constexpr int lost_exit_code = 3;

// --- a member -------------------------------------------------------------------------------

void expect(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "member %d: %s: %s\n", ::getpid(), what, pff_error_message());
  std::_Exit(1);
}

struct Part {
  Request file;
  Request memory;
};

Request columns(int members, int index) {
  constexpr std::int64_t piece = 64;
  constexpr std::int64_t rows = 300;
  Request made;
  made.where = pff_stride(piece * index, piece, piece * members, piece * rows);
  for (std::int64_t row = 0; row < rows; ++row)
    append_run(made.bytes, piece * (row * members + index), piece);
  return made;
}

std::vector<Part> draw_parts(Dice& dice, int members) {
  const auto kind = dice.upto(5);
  std::vector<Part> parts;
  for (int i = 0; i < members; ++i) {
    Part part;
    if (kind == 0) part.file = columns(members, i);
    if (kind > 0 && !dice.one_in(6)) part.file = kind < 4 ? a_stride(dice) : a_request(dice);
    part.memory = some_memory(dice, part.file.bytes.size());
    parts.push_back(std::move(part));
  }
  return parts;
}

// Now, or started and waited for.
std::int64_t write_together(pff_file* file, const Part& part, const Bytes& bytes, bool later) {
  pff_request* request = nullptr;
  if (!later) return pff_write_all_from(file, part.file.where, bytes.data(), part.memory.where);
  const int started =
      pff_start_write_all_from(file, part.file.where, bytes.data(), part.memory.where, &request);
  return started == 0 ? pff_wait(request) : started;
}

std::int64_t read_together(pff_file* file, const Part& part, Bytes& bytes, bool later) {
  pff_request* request = nullptr;
  if (!later) return pff_read_all_into(file, part.file.where, bytes.data(), part.memory.where);
  const int started =
      pff_start_read_all_into(file, part.file.where, bytes.data(), part.memory.where, &request);
  return started == 0 ? pff_wait(request) : started;
}

void write_round(Dice& dice, pff_set* set, pff_file* file, Bytes& model) {
  const auto parts = draw_parts(dice, pff_set_count(set));
  const Part& mine = parts[static_cast<std::size_t>(pff_set_member(set))];
  const auto moved = write_together(file, mine, filled(mine.file, mine.memory), dice.one_in(3));
  if (moved == PFF_ERR_PEER_LOST) std::_Exit(lost_exit_code);
  expect(moved == static_cast<std::int64_t>(mine.file.bytes.size()), "writing together");
  for (const Part& part : parts) {
    model.resize(std::max(model.size(), reach_of(part.file)));
    for (const std::int64_t at : part.file.bytes)
      model[static_cast<std::size_t>(at)] = value_at(at);
  }
}

// Within the file; another test covers accesses at its end.
void read_round(Dice& dice, pff_set* set, pff_file* file, const Bytes& model) {
  const auto parts = draw_parts(dice, pff_set_count(set));
  const Part& mine = parts[static_cast<std::size_t>(pff_set_member(set))];
  const bool later = dice.one_in(3);
  const auto too_far = [&](const Part& part) { return reach_of(part.file) > model.size(); };
  if (std::ranges::any_of(parts, too_far)) return;
  Bytes found(reach_of(mine.memory) + 1);
  const auto moved = read_together(file, mine, found, later);
  if (moved == PFF_ERR_PEER_LOST) std::_Exit(lost_exit_code);
  expect(moved == static_cast<std::int64_t>(mine.file.bytes.size()), "reading together");
  for (std::size_t i = 0; i < mine.file.bytes.size(); ++i)
    expect(found[static_cast<std::size_t>(mine.memory.bytes[i])] ==
               model[static_cast<std::size_t>(mine.file.bytes[i])],
           "bytes of a collective read");
}

void check_file(pff_file* file, const Bytes& model) {
  Bytes found(model.size() + 1);
  expect(pff_read(file, pff_span(0, found.size()), found.data()) ==
             static_cast<std::int64_t>(model.size()),
         "the size of the file");
  found.resize(model.size());
  expect(found == model, "contents of the file");
}

// Invalid arguments of one member are an error of all members, and the next call works. The others
// may write their byte, also before this one has come.
void check_errors_are_shared(pff_set* set, pff_file* file) {
  expect(pff_set_meet(set) == 0, "meeting");
  const bool first = pff_set_member(set) == 0;
  char byte = 0;
  expect(pff_write_all(file, pff_span(first ? -5 : 0, 1), &byte) == PFF_ERR_ARGUMENT,
         "an error of the first member");
  const std::string words = pff_error_message();
  expect(words.find("rank") == std::string::npos, "there are no ranks here");
  expect(first || words.find("member 0") != std::string::npos, "the message names the member");
  pff_request* request = nullptr;
  expect(pff_start_read_all(file, pff_span(first ? -5 : 0, 1), &byte, &request) == 0, "starting");
  expect(pff_wait(request) == PFF_ERR_ARGUMENT, "the same of a request");
  expect(pff_set_meet(set) == 0, "meeting");
}

std::vector<pid_t> read_pids() {
  std::vector<pid_t> pids;
  int pid = 0;
  while (std::scanf("%d", &pid) == 1) pids.push_back(pid);
  return pids;
}

// --- hosts: processes with another name of their machine, which share its network ------------

constexpr const char* meeting_variable = "SHIMA_TEST_MEETING";
constexpr int join_timeout_ms = 20'000;

// An address is a name, too, and needs no resolver.
std::string host_of(std::size_t member) { return "127.0.0." + std::to_string(member % 2 + 1); }

// All members of a host belong to one node.
int join_over_hosts(const std::vector<pid_t>& pids, std::uint64_t number, const char* meeting,
                    int timeout_ms, pff_set** set) {
  std::vector<std::string> hosts;
  for (std::size_t i = 0; i < pids.size(); ++i) hosts.push_back(host_of(i));
  std::vector<pff_place> places;
  for (std::size_t i = 0; i < pids.size(); ++i) places.push_back({hosts[i].c_str(), pids[i]});
  return pff_set_join_hosts(places.data(), static_cast<int>(places.size()), number, timeout_ms,
                            meeting, set);
}

bool become_host(std::size_t member) {
  const std::string host = host_of(member);
  return ::unshare(CLONE_NEWUTS) == 0 && ::sethostname(host.data(), host.size()) == 0;
}

int join_any(const std::vector<pid_t>& pids, std::uint64_t number, pff_set** set) {
  const char* const meeting = std::getenv(meeting_variable);
  if (meeting == nullptr)
    return pff_set_join(pids.data(), static_cast<int>(pids.size()), number, join_timeout_ms, set);
  const auto own = std::ranges::find(pids, ::getpid()) - pids.begin();
  expect(become_host(static_cast<std::size_t>(own)), "becoming another host");
  return join_over_hosts(pids, number, meeting, join_timeout_ms, set);
}

int member_main(const std::string& path, std::uint64_t seed, int rounds) {
  const auto pids = read_pids();
  pff_set* set = nullptr;
  expect(join_any(pids, seed, &set) == 0, "joining");
  expect(pff_set_count(set) == static_cast<int>(pids.size()), "count");
  expect(pids[static_cast<std::size_t>(pff_set_member(set))] == ::getpid(), "own place");
  const pff_region regions[] = {{0, 300, 2, "beside"}, {4'000, 128, 3, "beside"}};
  const pff_striping striping{2, regions};
  pff_file* file = nullptr;
  expect(pff_open_in(set, path.c_str(), PFF_READ | PFF_WRITE | PFF_CREATE,
                     seed % 2 == 0 ? &striping : nullptr, nullptr, &file) == 0,
         "opening");
  Dice dice(seed);
  Bytes model;
  for (int round = 0; round < rounds; ++round) {
    write_round(dice, set, file, model);
    read_round(dice, set, file, model);
  }
  expect(pff_set_meet(set) == 0, "meeting");
  check_file(file, model);
  check_errors_are_shared(set, file);
  pff_set_leave(set);
  expect(pff_close(file) == 0, "closing");
  return 0;
}

// --- the tests ------------------------------------------------------------------------------

// A process that runs this program again, and what it reads.
struct Started {
  pid_t pid = 0;
  int input = -1;
};

Started start_member(const std::string& path, std::uint64_t seed, int rounds) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
  const std::string seed_text = std::to_string(seed);
  const std::string rounds_text = std::to_string(rounds);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(ends[0], 0);
    ::execl("/proc/self/exe", "member", path.c_str(), seed_text.c_str(), rounds_text.c_str(),
            nullptr);
    std::_Exit(127);
  }
  ::close(ends[0]);
  return {pid, ends[1]};
}

std::vector<Started> start_set(int members, const std::string& path, std::uint64_t seed,
                               int rounds) {
  std::vector<Started> started;
  std::string list;
  for (int i = 0; i < members; ++i) {
    started.push_back(start_member(path, seed, rounds));
    list += std::to_string(started.back().pid) + "\n";
  }
  for (Started& member : started) {
    EXPECT_EQ(::write(member.input, list.data(), list.size()), static_cast<ssize_t>(list.size()));
    ::close(member.input);
  }
  return started;
}

int exit_code_of(pid_t pid) {
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1'000 + WTERMSIG(status);
}

// A free port of this machine, which nobody is likely to take soon.
std::string free_address() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t len = sizeof address;
  EXPECT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), len), 0);
  EXPECT_EQ(::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &len), 0);
  ::close(socket);
  return "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
}

class ProcessSetTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ =
        std::filesystem::temp_directory_path() / ("shima_set_" + std::to_string(::getpid()));
    std::filesystem::create_directory(directory_);
    path_ = (directory_ / "file").string();
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path directory_;
  std::string path_;
};

TEST_F(ProcessSetTest, RandomPatternsTogether) {
  std::uint64_t seed = 1;
  if (const char* text = std::getenv("SHIMA_SEED")) seed = std::strtoull(text, nullptr, 10);
  for (const int members : {1, 2, 4, 7}) {
    for (int i = 0; i < 2; ++i, ++seed) {
      SCOPED_TRACE("SHIMA_SEED=" + std::to_string(seed) + ", members " + std::to_string(members));
      for (const Started& member : start_set(members, path_ + std::to_string(seed), seed, 12))
        EXPECT_EQ(exit_code_of(member.pid), 0);
    }
  }
}

class HostsSetTest : public ProcessSetTest {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can give a process another host name";
    ProcessSetTest::SetUp();
    const std::string key = (directory_ / "key").string();
    const int fd = ::open(key.c_str(), O_WRONLY | O_CREAT, 0600);
    EXPECT_EQ(::write(fd, "a key of sixteen bytes and more\n", 32), 32);
    ::close(fd);
    ::setenv("SHIMA_IOD_KEY", key.c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv(meeting_variable);
    if (!directory_.empty()) ProcessSetTest::TearDown();
  }
};

TEST_F(HostsSetTest, RandomPatternsTogether) {
  std::uint64_t seed = 50;
  for (const int members : {1, 2, 3, 6}) {
    for (int i = 0; i < 2; ++i, ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", members " + std::to_string(members));
      ::setenv(meeting_variable, free_address().c_str(), 1);
      for (const Started& member : start_set(members, path_ + std::to_string(seed), seed, 12))
        EXPECT_EQ(exit_code_of(member.pid), 0);
    }
  }
}

TEST_F(HostsSetTest, WhoLosesAMemberGetsAnErrorSoon) {
  for (int delay_ms = 100; delay_ms < 700; delay_ms += 150) {
    SCOPED_TRACE("killed after " + std::to_string(delay_ms) + " ms");
    ::setenv(meeting_variable, free_address().c_str(), 1);
    const auto members = start_set(4, path_ + std::to_string(delay_ms), 100 + 2, 1'000'000);
    std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
    const auto killed = static_cast<std::size_t>(delay_ms / 50 % 4);
    ::kill(members[killed].pid, SIGKILL);
    for (std::size_t i = 0; i < members.size(); ++i) {
      const int code = exit_code_of(members[i].pid);
      if (i == killed) {
        EXPECT_EQ(code, 1'000 + SIGKILL);
      } else {
        EXPECT_TRUE(code == lost_exit_code || code == 1) << code;
      }
    }
  }
}

TEST_F(ProcessSetTest, WhoLosesAMemberGetsAnErrorSoon) {
  for (int delay_ms = 20; delay_ms < 420; delay_ms += 50) {
    SCOPED_TRACE("killed after " + std::to_string(delay_ms) + " ms");
    const auto members = start_set(4, path_ + std::to_string(delay_ms), 100 + 2, 1'000'000);
    std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
    const auto killed = static_cast<std::size_t>(delay_ms / 10 % 4);
    ::kill(members[killed].pid, SIGKILL);
    const CalmClock clock;
    for (std::size_t i = 0; i < members.size(); ++i) {
      const int code = exit_code_of(members[i].pid);
      if (i == killed) {
        EXPECT_EQ(code, 1'000 + SIGKILL);
      } else {  // joining and opening report an error by exit code 1
        EXPECT_TRUE(code == lost_exit_code || code == 1) << code;
      }
    }
    EXPECT_LT(clock.elapsed(), std::chrono::seconds(5));
  }
}

// A child that only sleeps, optionally as another user.
pid_t sleeping_child(uid_t user = ::geteuid()) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  if (::setresuid(user, user, user) != 0) std::_Exit(1);
  while (true) ::pause();
}

void end(pid_t pid) {
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

// The error of joining, which must arrive within a second after the time limit.
int join_code(const std::vector<pid_t>& pids, int timeout_ms, const char* words) {
  pff_set* set = nullptr;
  const CalmClock clock;
  const int code = pff_set_join(pids.data(), static_cast<int>(pids.size()), 5, timeout_ms, &set);
  EXPECT_LT(clock.elapsed(), std::chrono::milliseconds(timeout_ms + 1'000));
  EXPECT_EQ(set, nullptr);
  EXPECT_NE(std::string(pff_error_message()).find(words), std::string::npos) << pff_error_message();
  return code;
}

TEST_F(ProcessSetTest, ArraysThatAreNoSet) {
  const pid_t me = ::getpid();
  EXPECT_EQ(join_code({}, 100, "count is below 1"), PFF_ERR_ARGUMENT);
  EXPECT_EQ(join_code({me, me}, 100, "twice"), PFF_ERR_ARGUMENT);
  EXPECT_EQ(join_code({1, 2}, 100, "not in it"), PFF_ERR_ARGUMENT);
  EXPECT_EQ(join_code({me, 0}, 100, "not a process ID"), PFF_ERR_ARGUMENT);
  EXPECT_EQ(join_code({me, -7}, 100, "not a process ID"), PFF_ERR_ARGUMENT);
  EXPECT_EQ(join_code({me, 4'194'305}, 100, "4194305"), PFF_ERR_PEER_LOST);
}

TEST_F(ProcessSetTest, WhoDoesNotComeIsNamed) {
  const pid_t idle = sleeping_child();
  const std::string number = std::to_string(idle);
  EXPECT_EQ(join_code({::getpid(), idle}, 300, number.c_str()), PFF_ERR_TIMEOUT);
  EXPECT_EQ(join_code({idle, ::getpid()}, 300, number.c_str()), PFF_ERR_TIMEOUT);
  end(idle);
}

TEST_F(ProcessSetTest, TheDeadAreFound) {
  const pid_t dead = sleeping_child();
  end(dead);
  EXPECT_EQ(join_code({::getpid(), dead}, 60'000, "no process"), PFF_ERR_PEER_LOST);
  const pid_t zombie = ::fork();
  if (zombie == 0) std::_Exit(0);
  ::usleep(100'000);
  EXPECT_EQ(join_code({zombie, ::getpid()}, 60'000, "ended"), PFF_ERR_PEER_LOST);
  ::waitpid(zombie, nullptr, 0);
}

TEST_F(ProcessSetTest, WhoDiesWhileOthersWaitIsFound) {
  for (const bool first : {true, false}) {
    const pid_t dying = ::fork();
    if (dying == 0) {
      ::usleep(300'000);
      std::_Exit(0);
    }
    const CalmClock clock;
    const auto pids = first ? std::vector{dying, ::getpid()} : std::vector{::getpid(), dying};
    EXPECT_EQ(join_code(pids, 20'000, "exited"), PFF_ERR_PEER_LOST);
    EXPECT_LT(clock.elapsed(), std::chrono::seconds(3));
    ::waitpid(dying, nullptr, 0);
  }
}

TEST_F(ProcessSetTest, OtherUsersProcessesAreRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make another user's process";
  constexpr uid_t nobody = 65534;
  const pid_t foreign = sleeping_child(nobody);
  ::usleep(100'000);
  EXPECT_EQ(join_code({::getpid(), foreign}, 60'000, "65534"), PFF_ERR_ACCESS);
  EXPECT_EQ(join_code({foreign, ::getpid()}, 60'000, "65534"), PFF_ERR_ACCESS);
  end(foreign);
}

// Runs `body(pids, index)` in as many processes and returns what they exit with; a minute is the
// limit.
template <class Body>
std::vector<int> exit_codes_of_members(std::size_t members, Body body) {
  void* memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* const all_known = static_cast<std::atomic<bool>*>(memory);
  auto* const shown = reinterpret_cast<pid_t*>(all_known + 64);
  for (std::size_t i = 0; i < members; ++i) {
    const pid_t pid = ::fork();
    if (pid != 0) {
      shown[i] = pid;
      continue;
    }
    ::alarm(60);
    while (!*all_known) ::usleep(1000);
    std::_Exit(body(std::vector<pid_t>(shown, shown + members), i));
  }
  *all_known = true;
  std::vector<int> codes;
  for (std::size_t i = 0; i < members; ++i) codes.push_back(exit_code_of(shown[i]));
  ::munmap(memory, 4096);
  return codes;
}

// Without a time limit.
int join(const std::vector<pid_t>& pids, pff_set** set) {
  return pff_set_join(pids.data(), static_cast<int>(pids.size()), 9, -1, set);
}

void limit(int what, rlim_t value) {
  rlimit both{};
  ::getrlimit(static_cast<__rlimit_resource>(what), &both);
  both.rlim_cur = value;
  ::setrlimit(static_cast<__rlimit_resource>(what), &both);
}

TEST_F(ProcessSetTest, TheFirstMeetsTheOthersWhateverItsLimitOnFileSizes) {
  const auto codes = exit_codes_of_members(2, [](const auto& pids, std::size_t index) {
    if (index == 0) limit(RLIMIT_FSIZE, 0);
    pff_set* set = nullptr;
    return join(pids, &set) == 0 && pff_set_meet(set) == 0 ? 0 : 1;
  });
  EXPECT_EQ(codes, std::vector<int>(2, 0));
}

TEST_F(ProcessSetTest, AProcessWithoutFreeDescriptorsMeetsTheOthers) {
  for (const std::size_t without : {0U, 1U}) {
    const auto codes = exit_codes_of_members(2, [&](const auto& pids, std::size_t index) {
      if (index == without) limit(RLIMIT_NOFILE, 0);
      pff_set* set = nullptr;
      const bool good = join(pids, &set) == 0 && pff_set_meet(set) == 0;
      if (index == without && ::open("/dev/null", O_RDONLY) >= 0) return 2;
      return good ? 0 : 1;
    });
    EXPECT_EQ(codes, std::vector<int>(2, 0)) << "without descriptors: member " << without;
  }
}

// In the middle of a transfer between nodes; nothing of it is left for the next one.
TEST_F(HostsSetTest, AFullDiskOfOneNodeIsAnErrorOfAllAndTheNextCallWorks) {
  const std::string meeting = free_address();
  const auto codes = exit_codes_of_members(4, [&](const auto& pids, std::size_t index) {
    if (index % 2 == 1) ::setenv("SHIMA_FAULT", "write:ENOSPC:after=300000", 1);
    if (!become_host(index)) return 2;
    pff_set* set = nullptr;
    pff_file* file = nullptr;
    if (join_over_hosts(pids, 9, meeting.c_str(), join_timeout_ms, &set) != 0) return 3;
    if (pff_open_in(set, path_.c_str(), PFF_READ | PFF_WRITE | PFF_CREATE, nullptr,
                    "shima_collective=disk_directed;cb_buffer_size=65536", &file) != 0)
      return 4;
    constexpr std::int64_t piece = 100;
    constexpr std::uint64_t size = 2'000'000;
    const auto columns =
        pff_stride(piece * static_cast<std::int64_t>(index), piece, piece * 4, size);
    Bytes bytes(size, static_cast<unsigned char>(index + 1));
    if (pff_write_all(file, columns, bytes.data()) != PFF_ERR_NO_SPACE) return 5;
    constexpr std::uint64_t little = 10'000;
    const auto few = pff_stride(piece * static_cast<std::int64_t>(index), piece, piece * 4, little);
    Bytes found(little);
    const auto read = pff_read_all(file, few, found.data());
    if (read != static_cast<std::int64_t>(little)) return 6;
    if (found != Bytes(little, static_cast<unsigned char>(index + 1))) return 7;
    return pff_set_meet(set) == 0 && pff_close(file) == 0 ? 0 : 8;
  });
  EXPECT_EQ(codes, std::vector<int>(4, 0));
}

// Also those that come later.
TEST_F(ProcessSetTest, AllLeaveWithTheErrorOfOneThatCannotJoin) {
  for (const std::size_t failing : {0U, 1U}) {
    const auto codes = exit_codes_of_members(3, [&](const auto& pids, std::size_t index) {
      if (index == 2) ::usleep(200'000);
      pff_set* set = nullptr;
      return -join(pids, index == failing ? nullptr : &set);
    });
    EXPECT_EQ(codes, std::vector<int>(3, -PFF_ERR_ARGUMENT)) << "member " << failing << " fails";
  }
}

// One that is called wrongly on one member, twice in a row.
TEST_F(ProcessSetTest, ARequestThatOneMemberCannotStartIsAnErrorOfAll) {
  const auto codes = exit_codes_of_members(2, [&](const auto& pids, std::size_t index) {
    pff_set* set = nullptr;
    pff_file* file = nullptr;
    if (join(pids, &set) != 0 || pff_open_in(set, path_.c_str(), PFF_READ | PFF_WRITE | PFF_CREATE,
                                             nullptr, nullptr, &file) != 0)
      return 1;
    char byte = 'x';
    for (const bool writes : {true, true, false}) {
      pff_request* request = nullptr;
      auto** const place = index == 0 ? nullptr : &request;
      const int started = writes ? pff_start_write_all(file, pff_span(0, 1), &byte, place)
                                 : pff_start_read_all(file, pff_span(0, 1), &byte, place);
      if (started != (index == 0 ? PFF_ERR_ARGUMENT : 0)) return 2;
      if (index != 0 && pff_wait(request) != PFF_ERR_ARGUMENT) return 3;
    }
    if (pff_write_all(file, pff_span(static_cast<std::int64_t>(index), 1), &byte) != 1) return 4;
    return pff_size(file) == 2 && pff_close(file) == 0 ? 0 : 5;
  });
  EXPECT_EQ(codes, std::vector<int>(2, 0));
}

// Several sets of the same processes, in turn and at the same time, also with the same number.
TEST_F(ProcessSetTest, SetsOfTheSameProcesses) {
  const pid_t parent = ::getpid();
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  const std::array pids{parent, child == 0 ? ::getpid() : child};
  bool good = true;
  for (int i = 0; i < 20; ++i) {
    pff_set* one = nullptr;
    pff_set* two = nullptr;
    good = good && pff_set_join(pids.data(), 2, 1, 60'000, &one) == 0 &&
           pff_set_join(pids.data(), 2, i % 2 == 0 ? 1 : 2, 60'000, &two) == 0 &&
           pff_set_meet(two) == 0 && pff_set_meet(one) == 0;
    pff_set_leave(one);
    pff_set_leave(two);
  }
  if (child == 0) std::_Exit(good ? 0 : 1);
  EXPECT_TRUE(good) << pff_error_message();
  EXPECT_EQ(exit_code_of(child), 0);
}

}  // namespace
}  // namespace shima::test

int main(int argc, char** argv) {
  if (std::string(argv[0]) == "member")
    return shima::test::member_main(argv[1], std::strtoull(argv[2], nullptr, 10),
                                    std::atoi(argv[3]));
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
