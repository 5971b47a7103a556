#include "group/roll_call.h"

#include <dirent.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "base/process/process_handle.h"
#include "base/spare_descriptors.h"
#include "base/unique_fd.h"

namespace shima {
namespace {

// In shared memory; zero bytes are its valid initial state. The members' marks follow it.
struct Roll {
  enum : std::uint64_t { calling = 0, complete = 1 };  // else: the error and the process

  std::atomic<std::uint32_t> ready;  // `segment` can be read
  SharedRef segment;
  std::atomic<std::uint64_t> failure;  // of the first that cannot take part
  std::atomic<std::uint64_t> outcome;
  std::atomic<std::uint32_t> present_count;
  Event event;

  [[nodiscard]] std::atomic<std::uint32_t>* present() {
    return reinterpret_cast<std::atomic<std::uint32_t>*>(this + 1);
  }
  static std::size_t len_bytes(std::size_t members) {
    return sizeof(Roll) + members * sizeof(std::atomic<std::uint32_t>);
  }
};

constexpr std::uint64_t outcome_word(Code code, std::size_t index) {
  return static_cast<std::uint64_t>(code) << 32 | (index + 2);
}

std::unexpected<Error> failure_of(Code code, std::span<const pid_t> pids, std::size_t index) {
  const char* why = code == Code::timed_out   ? "did not arrive in time"
                    : code == Code::peer_lost ? "has exited"
                                              : "failed to take part";
  return fail(code, fmt::format("meeting the processes of a set: process {} (number {}) {}",
                                pids[index], index, why));
}

// The processes of the array, watched from before any memory is shared: so a process ID that is
// reused by another process is not mistaken for one of them.
class Watch {
 public:
  explicit Watch(std::span<const pid_t> pids) : pids_(pids) {}

  [[nodiscard]] Status begin() {
    handles_.reserve(pids_.size());
    for (const pid_t pid : pids_) {
      auto handle = ProcessHandle::of(pid);
      if (!handle)
        return fail(handle.error().code, "a set of processes: " + handle.error().what,
                    handle.error().sys_errno);
      SHIMA_TRY(check_user(pid));
      handles_.push_back(*std::move(handle));
    }
    return check();
  }

  // An error after one of them has exited; sets `gone` to its index. Of processes without a handle
  // it finds only those whose process ID is free.
  [[nodiscard]] Status check(std::size_t* gone = nullptr) const {
    for (std::size_t i = 0; i < pids_.size(); ++i) {
      const bool ended = i < handles_.size() ? handles_[i].has_ended()
                                             : ::kill(pids_[i], 0) != 0 && errno == ESRCH;
      if (!ended) continue;
      if (gone != nullptr) *gone = i;
      return failure_of(Code::peer_lost, pids_, i);
    }
    return {};
  }

 private:
  static Status check_user(pid_t pid) {
    struct stat facts{};
    if (::stat(fmt::format("/proc/{}", pid).c_str(), &facts) != 0)
      return fail(Code::peer_lost,
                  fmt::format("a set of processes: process {} does not exist", pid));
    if (facts.st_uid == ::geteuid()) return {};
    return fail(
        Code::access_denied,
        fmt::format("a set of processes: process {} belongs to user {}, this one to user {}", pid,
                    facts.st_uid, ::geteuid()));
  }

  std::span<const pid_t> pids_;
  std::vector<ProcessHandle> handles_;
};

// The index of this process in the array.
Result<std::size_t> own_place(std::span<const pid_t> pids) {
  if (pids.empty() || pids.size() > static_cast<std::size_t>(most_on_a_roll))
    return fail(Code::bad_argument, fmt::format("a set has 1 to {} processes", most_on_a_roll));
  std::vector<pid_t> sorted(pids.begin(), pids.end());
  std::ranges::sort(sorted);
  if (sorted.front() < 1)
    return fail(Code::bad_argument,
                fmt::format("a set of processes: {} is not a process ID", sorted.front()));
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end())
    return fail(Code::bad_argument,
                fmt::format("a set of processes: process {} is listed twice", *twice));
  const auto mine = std::ranges::find(pids, ::getpid());
  if (mine == pids.end())
    return fail(Code::bad_argument,
                fmt::format("a set of processes: this process, {}, is not in it", ::getpid()));
  return static_cast<std::size_t>(mine - pids.begin());
}

std::string roll_name(const RollCall& call) {
  std::uint64_t digest = 0xcbf29ce484222325U + call.number;
  const auto mix = [&](std::uint64_t word) {
    digest = (digest ^ word) * 0x9e3779b97f4a7c15U;
    digest ^= digest >> 29;
  };
  mix(call.number);
  for (const pid_t pid : call.pids) mix(static_cast<std::uint64_t>(pid));
  return fmt::format("shima-set-" SHIMA_VERSION "-{:016x}", digest);
}

// Separates the name of a roll from the ID of its System V segment.
constexpr char segment_mark = ':';

// The shared memory objects called `name` that process `pid` has open, each once.
Result<std::vector<SharedRef>> find_shared(pid_t pid, const std::string& name,
                                           std::size_t len_bytes) {
  const std::string directory = fmt::format("/proc/{}/fd", pid);
  const std::unique_ptr<DIR, int (*)(DIR*)> open_files(::opendir(directory.c_str()), ::closedir);
  if (!open_files && errno == ENOENT)
    return std::vector<SharedRef>{};  // the watch reports the exit
  if (!open_files) return fail_errno(errno, "reading the open files of " + directory);
  const std::string wanted = "/memfd:" + name;
  std::vector<SharedRef> found;
  while (const dirent* entry = ::readdir(open_files.get())) {
    char target[128];
    const std::string path = directory + "/" + entry->d_name;
    const ssize_t len = ::readlink(path.c_str(), target, sizeof target);
    if (len < 0 || !std::string_view(target, static_cast<std::size_t>(len)).starts_with(wanted))
      continue;
    const std::string rest(target + wanted.size(), static_cast<std::size_t>(len) - wanted.size());
    struct stat facts{};
    if (rest.starts_with(segment_mark)) {
      found.push_back({pid, SharedRef::Kind::system_v,
                       static_cast<int>(std::strtol(rest.c_str() + 1, nullptr, 10)), len_bytes, 0});
    } else if (::stat(path.c_str(), &facts) == 0 &&
               static_cast<std::uint64_t>(facts.st_size) == len_bytes) {
      found.push_back({pid, SharedRef::Kind::memfd,
                       static_cast<int>(std::strtol(entry->d_name, nullptr, 10)), len_bytes,
                       facts.st_ino});
    }
  }
  return found;
}

class Caller {
 public:
  Caller(const RollCall& call, std::size_t place)
      : call_(call), place_(place), name_(roll_name(call)), watch_(call.pids) {
    if (call.timeout) deadline_ = Clock::now() + *call.timeout;
  }

  Result<std::shared_ptr<NodeSegment>> run() {
    const Status watching = caught([&] { return watch_.begin(); });
    // What the others find out too.
    if (!watching &&
        (watching.error().code == Code::peer_lost || watching.error().code == Code::access_denied ||
         watching.error().code == Code::bad_argument))
      return std::unexpected(watching.error());
    SHIMA_TRY(place_ == 0 ? make() : find());
    const auto segment = caught([&]() -> Result<std::shared_ptr<NodeSegment>> {
      SHIMA_TRY(watching);
      SHIMA_TRY(call_.ready);
      return take_segment();
    });
    answer(segment ? Code::ok : segment.error().code);
    const Status outcome = wait_for_outcome();
    if (!outcome && !segment && segment.error().code == outcome.error().code) return segment;
    SHIMA_TRY(outcome);
    SHIMA_TRY((*segment)->introduce({.progress = {}, .peers = [this] { return watch_.check(); }}));
    return segment;
  }

 private:
  [[nodiscard]] Roll& roll() const { return *reinterpret_cast<Roll*>(bytes_.data()); }
  [[nodiscard]] bool late() const { return deadline_ && Clock::now() >= *deadline_; }

  // The part of the first process of the array.
  Status make() {
    const std::size_t len_bytes = Roll::len_bytes(call_.pids.size());
    SHIMA_TRY_ASSIGN(made_roll_, SharedBuffer::make(len_bytes, name_.c_str()));
    bytes_ = made_roll_.bytes();
    new (bytes_.data()) Roll{};
    if (made_roll_.ref().kind == SharedRef::Kind::memfd) return {};
    const std::string name = fmt::format("{}{}{}", name_, segment_mark, made_roll_.ref().number);
    sign_ = UniqueFd(::memfd_create(name.c_str(), MFD_CLOEXEC));
    if (!sign_) return fail_errno(errno, "meeting the processes of a set: making a roll");
    return {};
  }

  Result<std::shared_ptr<NodeSegment>> take_segment() {
    const int count = static_cast<int>(call_.pids.size());
    if (place_ == 0) {
      SHIMA_TRY_ASSIGN(made_segment_, NodeSegment::make(count));
      roll().segment = made_segment_.ref();
    }
    return NodeSegment::attach(roll().segment, count, static_cast<int>(place_));
  }

  // The part of the other processes.
  Status find() {
    constexpr unsigned longest_pause_us = 10'000;
    for (unsigned pause_us = 500;; pause_us = std::min(pause_us * 2, longest_pause_us)) {
      SHIMA_TRY_ASSIGN(const auto found,
                       find_shared(call_.pids.front(), name_, Roll::len_bytes(call_.pids.size())));
      for (const SharedRef& ref : found)
        if (is_calling(ref)) return {};
      SHIMA_TRY(watch_.check());
      if (late()) return failure_of(Code::timed_out, call_.pids, 0);
      ::usleep(pause_us);
    }
  }

  // An earlier call's roll may still exist.
  bool is_calling(const SharedRef& ref) {
    auto mapped = map_shared(ref);
    if (!mapped) return false;
    mapped_ = *std::move(mapped);
    bytes_ = mapped_.bytes();
    return roll().ready.load(std::memory_order_acquire) != 0 &&
           roll().outcome.load() == Roll::calling && roll().present()[place_].load() == 0;
  }

  // Shows that this process has come, and whether it can take part. The last one to come ends the
  // call, so that none comes later and waits for those that have left.
  void answer(Code code) {
    std::uint64_t none = 0;
    if (code != Code::ok) roll().failure.compare_exchange_strong(none, outcome_word(code, place_));
    if (place_ == 0) roll().ready.store(1, std::memory_order_release);
    roll().present()[place_].store(1);
    if (roll().present_count.fetch_add(1) + 1 != call_.pids.size()) return;
    const std::uint64_t failure = roll().failure.load();
    settle(failure == 0 ? std::uint64_t{Roll::complete} : failure);
  }

  void give_up(Code code, std::size_t index) { settle(outcome_word(code, index)); }

  void settle(std::uint64_t outcome) {
    std::uint64_t expected = Roll::calling;
    roll().outcome.compare_exchange_strong(expected, outcome);
    roll().event.post();
  }

  Status wait_for_outcome() {
    const WaitHooks hooks{.progress = {}, .peers = [this] { return check(); }};
    const auto settled = [this] { return roll().outcome.load() != Roll::calling; };
    SHIMA_TRY(wait_until(roll().event, hooks, settled));
    const std::uint64_t outcome = roll().outcome.load();
    if (outcome == Roll::complete) return {};
    return failure_of(static_cast<Code>(outcome >> 32), call_.pids, (outcome & 0xffffffff) - 2);
  }

  // Never fails: it writes the common outcome into the roll.
  Status check() {
    std::size_t gone = 0;
    if (!watch_.check(&gone)) give_up(Code::peer_lost, gone);
    if (late()) give_up(Code::timed_out, first_absent());
    return {};
  }

  [[nodiscard]] std::size_t first_absent() const {
    std::size_t index = 0;
    while (index + 1 < call_.pids.size() && roll().present()[index].load() != 0) ++index;
    return index;
  }

  const RollCall& call_;
  std::size_t place_;
  std::string name_;
  Watch watch_;
  std::optional<Clock::time_point> deadline_;
  SharedBuffer made_segment_;
  SharedBuffer made_roll_;
  UniqueFd sign_;  // names the roll where that is no memfd
  Mapping mapped_;
  std::span<std::byte> bytes_;
};

}  // namespace

Result<std::shared_ptr<NodeSegment>> call_roll(const RollCall& call) {
  SHIMA_TRY_ASSIGN(const std::size_t place, own_place(call.pids));
  const SpareDescriptors spare;
  return Caller(call, place).run();
}

}  // namespace shima
