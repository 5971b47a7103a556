#include "group/liveness/liveness.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <string>

#include "base/log.h"

namespace shima {
namespace {

// What runs in this process. A thread outlives its communicator until the other members have left,
// too; it is joined when the process joins another communicator, or at the end.
struct Running {
  std::mutex lock;
  pid_t process = ::getpid();
  std::vector<Liveness*> joined;
  std::vector<std::shared_ptr<Lookout>> lookouts;
  std::vector<std::shared_ptr<Hub>> hubs;

  // False in a process forked off, which has neither the threads nor a part of its own.
  [[nodiscard]] bool is_own() const { return process == ::getpid(); }
  void drop_finished() {
    const auto is_over = [](const auto& thread) { return thread->is_over(); };
    std::erase_if(lookouts, is_over);
    std::erase_if(hubs, is_over);
  }
};

Running& running() {
  static auto* const all = new Running;
  return *all;
}

UniqueFd connect_to_hub(const ServiceAddress& address) {
  constexpr std::chrono::milliseconds timeout{3000};
  static std::atomic<bool> unreachable{false};
  if (address.endpoint_count == 0 || unreachable) return {};
  auto hub = connect_to(address, timeout / address.endpoint_count);
  if (hub) {
    close_if_unreachable(hub->get(), node_timeout());
    return *std::move(hub);
  }
  unreachable = true;  // later opens do not wait for that again
  log(LogLevel::info,
      "rank 0 cannot be reached over TCP, so the end of a rank on another node is not noticed; "
      "tried {}",
      describe(hub.error()));
  return {};
}

}  // namespace

std::shared_ptr<Hub> Liveness::start_hub(std::span<const SocketAddress> addresses,
                                         std::size_t node_count) {
  rlimit descriptors{};
  const bool is_limited = ::getrlimit(RLIMIT_NOFILE, &descriptors) == 0;
  if (is_limited && node_count > descriptors.rlim_cur / 2) {
    log(LogLevel::info,
        "the end of a rank on another node is not noticed: that takes a descriptor for each of {} "
        "nodes, more than half of the limit of {}",
        node_count, descriptors.rlim_cur);
    return nullptr;
  }
  auto hub = Hub::start(addresses, node_timeout());
  if (!hub) {
    log(LogLevel::warn, "the end of a rank on another node is not noticed: {}",
        describe(hub.error()));
    return nullptr;
  }
  const std::lock_guard hold(running().lock);
  running().hubs.push_back(*hub);
  return *std::move(hub);
}

std::shared_ptr<Liveness> Liveness::join(WatchedNode node, const ServiceAddress& address,
                                         std::shared_ptr<Hub> hub) {
  std::shared_ptr<Liveness> joined(new Liveness(std::move(node), std::move(hub)));
  if (joined->node_.own != 0) return joined;
  auto lookout = Lookout::start(joined->node_, connect_to_hub(address));
  if (!lookout) {
    log(LogLevel::warn, "the end of a rank on another node is not noticed: {}",
        describe(lookout.error()));
    return joined;
  }
  const std::lock_guard hold(running().lock);
  running().lookouts.push_back(*lookout);
  joined->lookout_ = *std::move(lookout);
  return joined;
}

Liveness::Liveness(WatchedNode node, std::shared_ptr<Hub> hub)
    : node_(std::move(node)), hub_(std::move(hub)) {
  const std::lock_guard hold(running().lock);
  running().drop_finished();
  running().joined.push_back(this);
}

Liveness::~Liveness() {
  if (!running().is_own()) return;
  const std::lock_guard hold(running().lock);
  std::erase(running().joined, this);
  leave();
}

void Liveness::leave() {
  *node_.members[node_.own].left = 1;
  if (lookout_) lookout_->leave();
  if (hub_) hub_->leave();
}

// A leader that has ended tells its node nothing more.
Status Liveness::check() const noexcept {
  SHIMA_TRY(check_lost(*node_.lost));
  const WatchedNode::Member& leader = node_.members.front();
  if (node_.own == 0 || *leader.left != 0 || !leader.process.has_ended()) return {};
  return check_lost(leader.rank + 1);
}

Status check_lost(std::uint32_t word) noexcept {
  if (word == 0) return {};
  return fail_settled(Code::peer_lost, 0, [word] {
    return "waiting for rank " + std::to_string(word - 1) +
           ": its process has ended, or its node does not answer";
  });
}

void leave_all() {
  Running& all = running();
  if (!all.is_own()) return;
  const std::lock_guard hold(all.lock);
  for (Liveness* const each : all.joined) each->leave();
  for (const auto& lookout : all.lookouts) lookout->end();
  for (const auto& hub : all.hubs) hub->end();
}

}  // namespace shima
