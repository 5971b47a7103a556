#include "fuse/tree/watcher.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <exception>

#include "base/log.h"

namespace shima::fuse {
namespace {

using Clock = std::chrono::steady_clock;

// Limits the rate: a file that is written continuously keeps its readers' pages this long.
constexpr std::chrono::milliseconds pause_between_drops{2};

int milliseconds_until(Clock::time_point when) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(when - Clock::now()).count();
  return static_cast<int>(std::clamp<long long>(left + 1, 0, 1000));
}

}  // namespace

Status Watcher::start(Drop drop) {
  drop_ = std::move(drop);
  notes_ = UniqueFd(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!notes_) return fail_errno(errno, "watching files (inotify)");
  wake_ = UniqueFd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!wake_) return fail_errno(errno, "creating an eventfd");
  thread_ = std::thread([this] { run(); });
  return {};
}

Watcher::~Watcher() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  if (!thread_.joinable()) return;
  wake();
  thread_.join();
}

void Watcher::wake() const {
  const std::uint64_t one = 1;
  std::ignore = ::write(wake_.get(), &one, sizeof one);
}

bool Watcher::watch(const std::shared_ptr<Node>& node, std::span<const int> fds) {
  if (!notes_) return false;
  Freshness& fresh = node->freshness();
  const std::lock_guard lock(mutex_);
  for (const int fd : fds) {
    const std::string path = fmt::format("/proc/self/fd/{}", fd);
    const int watch = ::inotify_add_watch(notes_.get(), path.c_str(), IN_MODIFY);
    if (watch < 0) {
      log(LogLevel::info, "a file cannot be watched (errno {}): it is read without the page cache",
          errno);
      break;
    }
    fresh.watches.push_back(watch);
    watched_[watch].push_back(node);
  }
  fresh.watched = fresh.watches.size() == fds.size();
  return fresh.watched;
}

void Watcher::unwatch(Node& node) {
  Freshness& fresh = node.freshness();
  const std::lock_guard lock(mutex_);
  fresh.watched = false;
  for (const int watch : fresh.watches) {
    auto& nodes = watched_[watch];
    std::erase_if(nodes, [&](const std::weak_ptr<Node>& other) {
      const auto still = other.lock();
      return !still || still.get() == &node;
    });
    if (!nodes.empty()) continue;
    watched_.erase(watch);
    ::inotify_rm_watch(notes_.get(), watch);
  }
  fresh.watches.clear();
}

void Watcher::count_changes(int watch) {
  const auto found = watched_.find(watch);
  if (found == watched_.end()) return;
  for (const std::weak_ptr<Node>& each : found->second) {
    const std::shared_ptr<Node> node = each.lock();
    if (!node) continue;
    ++node->freshness().changes;
    if (node->freshness().readers > 0 && std::ranges::find(changed_, node) == changed_.end())
      changed_.push_back(node);
  }
}

void Watcher::take_notes() {
  alignas(inotify_event) std::array<char, 16384> buffer{};
  for (;;) {
    const ssize_t n = ::read(notes_.get(), buffer.data(), buffer.size());
    if (n <= 0) return;
    for (std::size_t at = 0; at < static_cast<std::size_t>(n);) {
      inotify_event note{};
      std::copy_n(buffer.data() + at, sizeof note, reinterpret_cast<char*>(&note));
      at += sizeof note + note.len;
      if ((note.mask & IN_Q_OVERFLOW) == 0) {
        count_changes(note.wd);
        continue;
      }
      for (const auto& [watch, nodes] : watched_) count_changes(watch);
    }
  }
}

bool Watcher::is_stale(Node& node) {
  bool others = false;
  {
    const std::lock_guard lock(mutex_);
    const std::size_t before = changed_.size();
    take_notes();
    others = before == 0 && !changed_.empty();
  }
  if (others) wake();
  return node.freshness().is_stale();
}

void Watcher::renew(std::shared_ptr<Node> node, std::function<void()> then) {
  {
    const std::lock_guard lock(mutex_);
    renewals_.push_back({std::move(node), std::move(then)});
  }
  wake();
}

// A change that arrives during the call is handled by the next one.
void Watcher::drop_pages(Node& node) {
  Freshness& fresh = node.freshness();
  const std::uint64_t changes = fresh.changes;
  if (fresh.dropped == changes) return;
  drop_(node.number);
  fresh.dropped = changes;
}

void Watcher::run() {
  Clock::time_point next_drop = Clock::now();
  for (;;) {
    const bool rests = Clock::now() < next_drop;
    std::array<pollfd, 2> fds{{{wake_.get(), POLLIN, 0}, {notes_.get(), POLLIN, 0}}};
    ::poll(fds.data(), rests ? 1 : 2, rests ? milliseconds_until(next_drop) : -1);
    std::uint64_t ignored = 0;
    std::ignore = ::read(wake_.get(), &ignored, sizeof ignored);
    std::deque<Renewal> renewals;
    std::vector<std::shared_ptr<Node>> changed;
    {
      const std::lock_guard lock(mutex_);
      if (ends_) return;
      take_notes();
      renewals.swap(renewals_);
      if (Clock::now() >= next_drop) changed.swap(changed_);
    }
    for (Renewal& renewal : renewals) {
      drop_pages(*renewal.node);
      renewal.then();
    }
    for (const auto& node : changed) drop_pages(*node);
    if (!changed.empty()) next_drop = Clock::now() + pause_between_drops;
  }
}

}  // namespace shima::fuse
