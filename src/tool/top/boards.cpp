#include "tool/top/boards.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/clock.h"

namespace shima::tool {
namespace {

constexpr std::string_view board_link = "/memfd:shima-board (deleted)";

template <std::size_t N>
std::string text_in(const std::array<char, N>& from) {
  std::string text(from.data(), ::strnlen(from.data(), N));
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
  return text;
}

std::uint64_t load(const std::atomic<std::uint64_t>& number) {
  return number.load(std::memory_order_relaxed);
}

Tally sum_of(const BoardTally& a, const BoardTally& b) {
  return {load(a.calls) + load(b.calls), load(a.bytes) + load(b.bytes)};
}

std::vector<FileSample> files_of(const BoardPage& page) {
  std::vector<FileSample> files;
  for (const BoardSlot& slot : page.slots) {
    if (slot.state.load(std::memory_order_acquire) != BoardSlot::shown) continue;
    files.push_back({text_in(slot.name), load(slot.key), slot.met.load(),
                     sum_of(slot.lanes[0].written, slot.lanes[1].written),
                     sum_of(slot.lanes[0].read, slot.lanes[1].read)});
  }
  return files;
}

using Directory = std::unique_ptr<DIR, int (*)(DIR*)>;
Directory open_directory(const std::string& path) { return {::opendir(path.c_str()), ::closedir}; }

int number_in(const char* name) {
  int number = 0;
  const char* const end = name + std::strlen(name);
  const auto parsed = std::from_chars(name, end, number);
  return parsed.ec == std::errc{} && parsed.ptr == end ? number : -1;
}

std::uint64_t now_ms() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                        std::chrono::system_clock::now().time_since_epoch())
                                        .count());
}

// A process with several libraries of Shima has a board for each.
void join(TaskSample& task, const TaskSample& more) {
  for (std::size_t i = 0; i < task.counted.size(); ++i) {
    task.counted[i].calls += more.counted[i].calls;
    task.counted[i].bytes += more.counted[i].bytes;
  }
  task.files.insert(task.files.end(), more.files.begin(), more.files.end());
  task.met += more.met;
  task.queued += more.queued;
  task.clients += more.clients;
  task.asleep_ms = std::max(task.asleep_ms, more.asleep_ms);
  task.uncounted_ms = std::max(task.uncounted_ms, more.uncounted_ms);
  task.up_ms = std::max(task.up_ms, more.up_ms);
  // In one order: kinds are compared.
  task.kind = std::min(task.kind, more.kind) + "+" + std::max(task.kind, more.kind);
  if (task.rank < 0) task.rank = more.rank, task.tasks = more.tasks;
  if (more.call == call::none) return;
  const bool is_outer = task.call == call::none || more.call >= call::dsm_access;
  if (!is_outer) return;
  task.call = more.call;
  task.file = more.file;
  task.key = more.key;
  task.serial = more.serial;
}

std::uint64_t ms_between(std::uint64_t begin_ns, std::uint64_t end_ns) {
  return end_ns > begin_ns ? (end_ns - begin_ns) / 1'000'000 : 0;
}

// A task that wakes for a moment inside a call to look still waits.
void note_wait(const BoardPage& page, std::uint64_t now_ns, TaskSample& task) {
  const std::uint64_t asleep = load(page.asleep_since_ns);
  const std::uint64_t last_end = load(page.last_sleep_end_ns);
  const bool looks =
      task.call != call::none && last_end != 0 && now_ns <= last_end + BoardPage::wait_gap_ns;
  if (asleep == 0 && !looks) return;
  task.asleep_ms = std::max<std::uint64_t>(ms_between(load(page.wait_began_ns), now_ns), 1);
  task.uncounted_ms = asleep != 0 ? ms_between(asleep, now_ns) : 0;
  task.waits_for = page.waits_for.load() - 1;
}

bool comes_before(const TaskSample& a, const TaskSample& b) {
  return std::tuple(a.is_node(), a.job, a.rank, a.pid) <
         std::tuple(b.is_node(), b.job, b.rank, b.pid);
}

}  // namespace

TaskSample task_of(const BoardPage& page, std::uint64_t now_ns) {
  TaskSample task;
  const auto kind = static_cast<std::size_t>(page.kind);
  task.kind = kind < board_kind_names.size() ? std::string(board_kind_names[kind]) : "unknown";
  task.host = text_in(page.host);
  task.program = text_in(page.program);
  task.job = text_in(page.job);
  task.pid = page.pid;
  task.rank = page.rank;
  task.tasks = page.tasks;
  task.up_ms = ms_between(page.started_ns, now_ns);
  for (std::size_t i = 0; i < counted_kinds; ++i)
    task.counted[i] = sum_of(page.lanes[0].tallies[i], page.lanes[1].tallies[i]);
  const std::uint64_t doing = load(page.doing);
  task.call = static_cast<CallCode>(doing & 0xffffU);
  task.serial = static_cast<std::uint32_t>(doing >> 32U);
  const auto slot = static_cast<std::size_t>(doing >> 16U & 0xffffU);
  if (task.call != call::none && slot < page.slots.size()) {
    task.file = text_in(page.slots[slot].name);
    task.key = load(page.slots[slot].key);
  }
  note_wait(page, now_ns, task);
  task.met = page.met;
  task.queued = page.queued;
  task.clients = page.clients;
  task.files = files_of(page);
  const std::string hosts = text_in(page.hosts);
  if (board_digest(hosts) == load(page.hosts_digest)) task.hosts = hosts;
  return task;
}

bool is_meant(const std::string& job, const TaskSample& task) {
  return task.job == job || task.job.ends_with("." + job) || std::to_string(task.pid) == job;
}

void Boards::find() {
  const Directory all = open_directory("/proc");
  if (!all) return;
  while (const dirent* const entry = ::readdir(all.get()))
    if (const int pid = number_in(entry->d_name); pid > 0) find_in(pid);
}

void Boards::find_in(int pid) {
  const std::string path = fmt::format("/proc/{}/fd", pid);
  const Directory all = open_directory(path);
  if (!all) return;
  std::array<char, 64> link{};
  while (const dirent* const entry = ::readdir(all.get())) {
    const ssize_t len = ::readlinkat(::dirfd(all.get()), entry->d_name, link.data(), link.size());
    if (len < 0 || std::string_view(link.data(), static_cast<std::size_t>(len)) != board_link)
      continue;
    UniqueFd memory(::openat(::dirfd(all.get()), entry->d_name, O_RDONLY | O_CLOEXEC));
    struct stat facts{};
    if (!memory || ::fstat(memory.get(), &facts) != 0 || boards_.contains(facts.st_ino) ||
        facts.st_size < static_cast<off_t>(sizeof(BoardPage)))
      continue;
    const ino_t inode = facts.st_ino;
    boards_.emplace(inode,
                    Board{pid, std::move(memory), ProcessHandle::anyway(ProcessIdentity::of(pid)),
                          facts.st_uid == ::geteuid(), false});
  }
}

Sample Boards::look() {
  Sample sample{.time_ms = now_ms(), .tasks = {}};
  const auto now_ns = static_cast<std::uint64_t>(Clock::now().time_since_epoch().count());
  const auto page = std::make_unique<BoardPage>();
  for (auto& [inode, board] : boards_) {
    if (::pread(board.memory.get(), static_cast<void*>(page.get()), sizeof(BoardPage), 0) !=
            static_cast<ssize_t>(sizeof(BoardPage)) ||
        load(page->magic) != BoardPage::magic_number || page->version != BoardPage::current_version)
      continue;
    TaskSample task = task_of(*page, now_ns);
    task.pid = board.pid;
    task.is_own = board.is_own;
    board.has_ended = board.has_ended || board.process.has_ended();
    task.has_ended = board.has_ended;
    if (task.has_ended) task.call = call::none, task.asleep_ms = 0, task.uncounted_ms = 0;
    const auto known = std::ranges::find(sample.tasks, task.pid, &TaskSample::pid);
    if (known != sample.tasks.end() && known->host == task.host)
      join(*known, task);
    else
      sample.tasks.push_back(std::move(task));
  }
  std::ranges::sort(sample.tasks, comes_before);
  return sample;
}

}  // namespace shima::tool
