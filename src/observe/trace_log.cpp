#include "observe/trace_log.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <string>

#include "base/log.h"
#include "base/unique_fd.h"

namespace shima {
namespace {

constexpr std::size_t most_step_bytes = std::size_t{1} << 20U;
// The first traced call waits for it.
constexpr std::size_t first_step_bytes = std::size_t{64} << 10U;
constexpr std::size_t usual_limit_bytes = std::size_t{16} << 20U;
constexpr std::size_t least_limit_bytes = std::size_t{64} << 10U;

using trace::space;

// The open trace file, but for what each traced call reads. Never freed: calls may come while the
// process exits.
struct Log {
  int file = -1;
  struct stat identity{};
  std::mutex growing;
  std::mutex naming;
};

Log& the_log() {
  static auto* const made = new Log;
  return *made;
}

constinit std::atomic<bool> is_started{false};

std::size_t limit_wanted() {
  const char* text = std::getenv("SHIMA_TRACE_LIMIT");
  if (text == nullptr || *text == '\0') return usual_limit_bytes;
  char* end = nullptr;
  unsigned long long value = std::strtoull(text, &end, 10);
  if (*end == 'K') value <<= 10U;
  if (*end == 'M') value <<= 20U;
  if (*end == 'G') value <<= 30U;
  return std::max<std::size_t>(value, least_limit_bytes);
}

// Disk space for bytes of the file. A file beyond the process's limit is a signal that kills.
bool allocate(int file, std::size_t begin, std::size_t len_bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 ||
      (limit.rlim_cur != RLIM_INFINITY && begin + len_bytes > limit.rlim_cur)) {
    errno = EFBIG;
    return false;
  }
  const int error =
      ::posix_fallocate(file, static_cast<off_t>(begin), static_cast<off_t>(len_bytes));
  errno = error;
  return error == 0;
}

std::uint64_t clock_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

template <std::size_t N>
void put(std::array<char, N>& to, std::string_view text) {
  to[text.copy(to.data(), N - 1)] = '\0';
}

void read_boot(std::array<char, 40>& boot) {
  const UniqueFd file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  const ssize_t len = file ? ::read(file.get(), boot.data(), boot.size() - 1) : 0;
  boot[static_cast<std::size_t>(std::max<ssize_t>(len, 0))] = '\0';
  boot[std::strcspn(boot.data(), "\n")] = '\0';
}

void fill(TraceHead& head) {
  head.version = TraceHead::current_version;
  head.head_bytes = trace_head_bytes;
  head.event_bytes = sizeof(TraceEvent);
  head.pid = ::getpid();
  head.rank = -1;
  head.tasks = -1;
  head.monotonic_ns = clock_ns(CLOCK_MONOTONIC);
  head.realtime_ns = clock_ns(CLOCK_REALTIME);
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  put(head.host, host.data());
  put(head.program, program_invocation_short_name);
  read_boot(head.boot);
  head.magic.store(TraceHead::magic_number, std::memory_order_release);
}

void give_up(const std::string& path, int error) {
  log(LogLevel::warn,
      "this process is not traced: {}: {}; choose a file for --trace or --html on a file system "
      "with space that every host of the job can write to",
      path, std::strerror(error));
}

void open_log(const std::string& directory) {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  const std::string path = fmt::format("{}/{}-{}-{:x}.trace", directory, host.data(), ::getpid(),
                                       clock_ns(CLOCK_MONOTONIC) & 0xffffffU);
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return give_up(path, errno);
  if (!allocate(file.get(), 0, trace_head_bytes)) {
    const int error = errno;
    ::unlink(path.c_str());
    return give_up(path, error);
  }
  Log& log = the_log();
  space.limit_bytes = limit_wanted();
  void* const memory = ::mmap(nullptr, trace_head_bytes + space.limit_bytes, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_NORESERVE, file.get(), 0);
  if (memory == MAP_FAILED) return give_up(path, errno);
  if (::fstat(file.get(), &log.identity) != 0) return give_up(path, errno);
  // Low numbers are the program's.
  constexpr int lowest = 200;
  const int high = ::fcntl(file.get(), F_DUPFD_CLOEXEC, lowest);
  log.file = high >= 0 ? high : file.release();
  space.head = static_cast<TraceHead*>(memory);
  space.events = static_cast<std::byte*>(memory) + trace_head_bytes;
  fill(*space.head);
  trace::start_clock();
  ::pthread_atfork(nullptr, nullptr, [] { space.state = 0; });
  space.state.fetch_or(trace::is_open, std::memory_order_release);
}

// A program may close all descriptors and open a file of its own, which gets the same number. (What
// it does so between this look and the use of the descriptor is not seen.)
bool is_same_file(int file, const struct stat& identity) {
  struct stat now{};
  return ::fstat(file, &now) == 0 && now.st_dev == identity.st_dev && now.st_ino == identity.st_ino;
}

// Defers pthread_cancel: pwritev is a cancellation point, and a cancellation must not unwind a
// noexcept function.
class NotCancelled {
 public:
  NotCancelled() { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  NotCancelled(const NotCancelled&) = delete;
  NotCancelled& operator=(const NotCancelled&) = delete;
  ~NotCancelled() { ::pthread_setcancelstate(before_, nullptr); }

 private:
  int before_ = 0;
};

// Stores zeros into allocated disk space, so that the kernel allocates many pages a call and an
// event causes no page fault. False if the file system has no room after all.
bool fill_with_zeros(int file, std::size_t begin, std::size_t len_bytes) {
  static constexpr std::array<std::byte, std::size_t{16} << 10U> zeros{};
  std::array<iovec, most_step_bytes / zeros.size()> parts;
  for (std::size_t done = 0; done < len_bytes;) {
    std::size_t count = 0;
    for (std::size_t described = done; described < len_bytes && count < parts.size(); ++count) {
      parts[count] = {const_cast<std::byte*>(zeros.data()),
                      std::min(zeros.size(), len_bytes - described)};
      described += parts[count].iov_len;
    }
    const ssize_t moved =
        ::pwritev(file, parts.data(), static_cast<int>(count), static_cast<off_t>(begin + done));
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return false;
    done += static_cast<std::size_t>(moved);
  }
  return true;
}

// Room for an event at an offset.
bool grow_to(Log& log, std::size_t end_bytes) {
  const NotCancelled here;
  const std::lock_guard hold(log.growing);
  if (space.allocated_bytes >= end_bytes) return true;  // another thread has seen to it
  if (!is_same_file(log.file, log.identity)) {
    space.limit_bytes = space.allocated_bytes.load();
    return false;
  }
  while (space.allocated_bytes < end_bytes) {
    const std::size_t begin = space.allocated_bytes;
    const std::size_t step = std::clamp(begin, first_step_bytes, most_step_bytes);
    const std::size_t len = std::min(step, space.limit_bytes.load() - begin);
    if (len == 0 || !allocate(log.file, trace_head_bytes + begin, len) ||
        !fill_with_zeros(log.file, trace_head_bytes + begin, len)) {
      space.limit_bytes = begin;
      return false;
    }
    // Maps them at once; without it (before Linux 5.14) the page faults remain.
    ::madvise(space.events + begin, len, MADV_POPULATE_WRITE);
    space.allocated_bytes.store(begin + len, std::memory_order_release);
  }
  return true;
}

TraceEvent* drop(std::uint64_t bytes) {
  space.head->dropped.fetch_add(1, std::memory_order_relaxed);
  space.head->dropped_bytes.fetch_add(bytes, std::memory_order_relaxed);
  return nullptr;
}

// Adds a site at a free place of the table; 0 if another site has taken it meanwhile.
std::uint16_t add_site(const void* site, std::size_t at) {
  const auto address = reinterpret_cast<std::uint64_t>(site);
  const std::lock_guard hold(the_log().naming);
  TraceSite& entry = space.head->sites[at];
  const auto number = static_cast<std::uint16_t>(at + 1);
  if (const auto known = entry.address.load(std::memory_order_relaxed); known != 0)
    return known == address ? number : 0;
  Dl_info module{};
  if (::dladdr(site, &module) != 0 && module.dli_fname != nullptr) {
    std::array<char, PATH_MAX> whole{};
    const char* path = ::realpath(module.dli_fname, whole.data());
    put(entry.module, path != nullptr ? path : module.dli_fname);
    entry.offset = address - reinterpret_cast<std::uint64_t>(module.dli_fbase);
  }
  entry.address.store(address, std::memory_order_release);
  return number;
}

}  // namespace

namespace trace {

constinit TraceSpace space;

std::uint16_t file_number(std::string_view path) noexcept {
  if (!has_trace()) return 0;
  const std::lock_guard hold(the_log().naming);
  TraceHead& head = *space.head;
  const std::uint32_t count = head.files;
  const std::string_view kept = path.substr(0, TraceHead::name_bytes - 1);
  for (std::uint32_t i = 0; i < count; ++i)
    if (kept == head.file_names[i].data()) return static_cast<std::uint16_t>(i + 1);
  if (count == TraceHead::file_count) return 0;
  put(head.file_names[count], kept);
  head.files.store(count + 1, std::memory_order_release);
  return static_cast<std::uint16_t>(count + 1);
}

std::uint16_t site_number(const void* site) noexcept {
  if (site == nullptr) return 0;
  const auto address = reinterpret_cast<std::uint64_t>(site);
  const auto& sites = space.head->sites;
  constexpr std::size_t most_probes = 16;
  std::size_t at = (address ^ address >> 9U) % sites.size();
  for (std::size_t probe = 0; probe < most_probes; ++probe, at = (at + 1) % sites.size()) {
    const std::uint64_t known = sites[at].address.load(std::memory_order_acquire);
    if (known == address) return static_cast<std::uint16_t>(at + 1);
    if (known != 0) continue;
    if (const std::uint16_t number = add_site(site, at); number != 0) return number;
  }
  return 0;
}

TraceEvent* make_room(std::uint64_t bytes) noexcept {
  std::atomic<std::uint64_t>& count = space.head->events;
  const std::uint64_t number = count.load(std::memory_order_relaxed);
  if ((number + 1) * sizeof(TraceEvent) > space.limit_bytes) return drop(bytes);
  const std::uint64_t mine = count.fetch_add(1, std::memory_order_relaxed);
  const std::size_t end = (mine + 1) * sizeof(TraceEvent);
  if (end > space.allocated_bytes.load(std::memory_order_acquire) &&
      (end > space.limit_bytes || !grow_to(the_log(), end)))
    return drop(bytes);
  return reinterpret_cast<TraceEvent*>(space.events + mine * sizeof(TraceEvent));
}

TraceEvent* add(const TraceEvent& event) noexcept {
  TraceEvent* const to = next_event(event.bytes);
  if (to == nullptr) return nullptr;
  *to = event;
  publish(*to);
  return to;
}

}  // namespace trace

void start_trace(int rank, int tasks) noexcept {
  const char* const directory = std::getenv(trace_variable);
  if (directory == nullptr || *directory == '\0') return;
  if (!is_started.exchange(true)) {
    try {
      open_log(directory);
    } catch (const std::exception& exception) {
      give_up(directory, ENOMEM);
    }
  }
  if (!has_trace()) return;
  space.head->rank = rank;
  space.head->tasks = tasks;
}

void pause_trace() noexcept {
  space.state.fetch_or(trace::is_paused);
  space.pauses.fetch_add(1);
}

void resume_trace() noexcept { space.state.fetch_and(~trace::is_paused); }

}  // namespace shima
