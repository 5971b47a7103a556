#include "observe/board.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <set>
#include <utility>

#include "base/process/host_list.h"
#include "base/process/launcher.h"

namespace shima {
namespace board {

constinit BoardPage unseen{};
constinit std::atomic<BoardPage*> page{&unseen};
constinit std::atomic<const void*> first_thread{nullptr};

}  // namespace board

namespace {

constexpr int lowest_descriptor = 200;

constinit std::atomic<bool> is_started{false};
constinit int descriptor = -1;
constinit ino_t inode = 0;

template <std::size_t N>
void put(std::array<char, N>& to, std::string_view text) {
  to[text.copy(to.data(), N - 1)] = '\0';
}

// A name that is too long keeps its end.
template <std::size_t N>
void put_end(std::array<char, N>& to, std::string_view text) {
  if (text.size() >= N) {
    constexpr std::string_view dots = "...";
    put(to, dots);
    constexpr std::size_t kept = N - 1 - dots.size();
    text.copy(to.data() + dots.size(), kept, text.size() - kept);
    to[N - 1] = '\0';
    return;
  }
  put(to, text);
}

// The child of a fork shows nothing: its counters would be its parent's. Only calls that are
// allowed there.
void leave_in_child() {
  board::page.store(&board::unseen, std::memory_order_relaxed);
  struct stat facts{};
  if (descriptor >= 0 && ::fstat(descriptor, &facts) == 0 && facts.st_ino == inode)
    ::close(descriptor);
  descriptor = -1;
}

bool fits_file_limit(std::size_t len_bytes) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
         (limit.rlim_cur == RLIM_INFINITY || len_bytes <= limit.rlim_cur);
}

// The highest numbers are left to programs that count down from the limit.
int high_number() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return lowest_descriptor;
  const rlim_t half = limit.rlim_cur / 2;
  return half < static_cast<rlim_t>(lowest_descriptor) ? static_cast<int>(half) : lowest_descriptor;
}

BoardPage* map_page() {
  constexpr std::size_t len_bytes = sizeof(BoardPage);
  if (!fits_file_limit(len_bytes)) return nullptr;
  const int low = ::memfd_create("shima-board", MFD_CLOEXEC);
  if (low < 0) return nullptr;
  const int high = ::fcntl(low, F_DUPFD_CLOEXEC, high_number());
  ::close(low);
  if (high < 0) return nullptr;
  struct stat facts{};
  void* memory = MAP_FAILED;
  if (::ftruncate(high, static_cast<off_t>(len_bytes)) == 0 && ::fstat(high, &facts) == 0)
    memory = ::mmap(nullptr, len_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, high, 0);
  if (memory == MAP_FAILED) {
    ::close(high);
    return nullptr;
  }
  descriptor = high;
  inode = facts.st_ino;
  return static_cast<BoardPage*>(memory);
}

std::uint64_t ns_of(Clock::time_point time) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count());
}

void put_hosts(BoardPage& page, std::string_view list) {
  const std::string_view fitting = first_hosts(list, page.hosts.size() - 1);
  put(page.hosts, fitting);
  page.hosts_digest.store(board_digest(fitting), std::memory_order_release);
}

void fill(BoardPage& page, BoardKind kind) {
  page.version = BoardPage::current_version;
  page.size_bytes = sizeof(BoardPage);
  page.kind = kind;
  page.pid = ::getpid();
  page.rank = -1;
  page.tasks = -1;
  page.started_ns = ns_of(Clock::now());
  put_end(page.job, job_name());
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  put(page.host, host.data());
  put(page.program, program_invocation_short_name);
  put_hosts(page, launcher_hosts());
}

bool is_switched_off() {
  const char* setting = std::getenv("SHIMA_TOP");
  return setting != nullptr && std::string_view(setting) == "off";
}

void start(const BoardOwner& owner) {
  BoardPage* const page = map_page();
  if (page == nullptr) return;
  fill(*page, owner.kind);
  ::pthread_atfork(nullptr, nullptr, leave_in_child);
  page->rank = owner.rank;
  page->tasks = owner.tasks;
  board::page.store(page, std::memory_order_release);
  page->magic.store(BoardPage::magic_number, std::memory_order_release);
}

}  // namespace

void show_board(const BoardOwner& owner) noexcept {
  if (!is_started.exchange(true)) {
    board::first_thread.store(board::this_thread(), std::memory_order_relaxed);
    if (is_switched_off()) return;
    try {
      return start(owner);
    } catch (const std::exception&) {
      return;  // without memory for a name, nothing is shown
    }
  }
  BoardPage& page = board::shown();
  page.rank = owner.rank;
  page.tasks = owner.tasks;
}

void show_hosts(std::span<const std::string> names) noexcept {
  static std::mutex turn;
  try {
    const std::lock_guard hold(turn);
    static auto* const known = new std::set<std::string>;
    known->insert(names.begin(), names.end());
    std::string list;
    for (const std::string& name : *known) list += (list.empty() ? "" : ",") + name;
    put_hosts(board::shown(), list);
  } catch (const std::exception&) {
    return;  // without memory, what was shown stays
  }
}

BoardFile::BoardFile(std::string_view name, std::uint64_t key) noexcept {
  BoardPage& page = board::shown();
  for (std::uint32_t i = 0; i < BoardPage::slot_count; ++i) {
    BoardSlot& slot = page.slots[i];
    std::uint32_t expected = BoardSlot::free;
    if (!slot.state.compare_exchange_strong(expected, BoardSlot::claimed)) continue;
    slot.met = 0;
    slot.key = key;
    for (BoardFileLane& lane : slot.lanes)
      for (BoardTally* tally : {&lane.written, &lane.read}) tally->calls = 0, tally->bytes = 0;
    put_end(slot.name, name);
    slot.state.store(BoardSlot::shown, std::memory_order_release);
    number_ = i;
    return;
  }
}

BoardFile::BoardFile(BoardFile&& other) noexcept
    : number_(std::exchange(other.number_, BoardPage::no_slot)) {}

BoardFile& BoardFile::operator=(BoardFile&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

BoardFile::~BoardFile() {
  if (number_ == BoardPage::no_slot) return;
  board::shown().slots[number_].state.store(BoardSlot::free, std::memory_order_release);
}

Asleep::Asleep(int waits_for) : begin_(Clock::now()) {
  if (!board::is_first_thread()) return;
  page_ = &board::shown();
  const std::uint64_t now = ns_of(begin_);
  if (now - page_->last_sleep_end_ns.load(std::memory_order_relaxed) > BoardPage::wait_gap_ns)
    page_->wait_began_ns.store(now, std::memory_order_relaxed);
  page_->waits_for.store(waits_for + 1, std::memory_order_relaxed);
  page_->asleep_since_ns.store(now, std::memory_order_relaxed);
}

Asleep::~Asleep() {
  const std::uint64_t end = ns_of(Clock::now());
  count(Counted::wait, end - ns_of(begin_));
  if (page_ == nullptr) return;
  page_->last_sleep_end_ns.store(end, std::memory_order_relaxed);
  page_->asleep_since_ns.store(0, std::memory_order_relaxed);
}

}  // namespace shima
