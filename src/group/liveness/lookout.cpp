#include "group/liveness/lookout.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <tuple>

#include "base/process/quiet_thread.h"

namespace shima {

Result<std::shared_ptr<Lookout>> Lookout::start(WatchedNode node, UniqueFd hub) {
  std::shared_ptr<Lookout> lookout(new Lookout(std::move(node), std::move(hub)));
  SHIMA_TRY(lookout->prepare());
  auto thread = start_quiet_thread([own = lookout.get()] { own->run(); });
  if (!thread) {
    // The hub would take the end of the connection for the loss of this node.
    lookout->say_goodbye();
    return std::unexpected(thread.error());
  }
  lookout->thread_ = *std::move(thread);
  return lookout;
}

// Descriptors are a resource of the program: beyond the first members of a large node, the thread
// asks /proc from time to time.
Status Lookout::prepare() {
  constexpr std::size_t most_descriptors = 64;
  bell_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!bell_) return fail_errno(errno, "watching the processes of this node (eventfd)");
  for (std::size_t i = 0; i < node_.members.size(); ++i) {
    if (i == node_.own) continue;
    const WatchedNode::Member& member = node_.members[i];
    neighbours_.push_back({&member, neighbours_.size() < most_descriptors
                                        ? ProcessHandle::anyway(member.process)
                                        : ProcessHandle::without_descriptor(member.process)});
  }
  watched_.resize(2 + neighbours_.size());
  if (hub_ &&
      !send_notice(hub_.get(), {.kind = Notice::join, .rank = node_.members[node_.own].rank}))
    hub_ = {};
  return {};
}

void Lookout::end() {
  stopping_ = true;
  leave();
  if (thread_.joinable()) thread_.join();
}

void Lookout::leave() {
  const std::uint64_t once = 1;
  if (bell_) std::ignore = ::write(bell_.get(), &once, sizeof once);
}

void Lookout::run() {
  while (!stopping_ && !has_everyone_left()) {
    watched_[0] = {bell_.get(), POLLIN, 0};
    watched_[1] = {hub_.get(), POLLIN, 0};  // poll ignores descriptor -1
    for (std::size_t i = 0; i < neighbours_.size(); ++i)
      watched_[2 + i] = {neighbours_[i].process.descriptor(), POLLIN, 0};
    if (::poll(watched_.data(), 2 + neighbours_.size(), next_look_ms()) < 0 && errno != EINTR)
      break;
    std::uint64_t rings = 0;
    std::ignore = ::read(bell_.get(), &rings, sizeof rings);
    if (*node_.members[node_.own].left != 0) say_goodbye();
    if (hub_ && watched_[1].revents != 0) hear_hub();
    // Without memory it looks again later.
    std::ignore = caught([this]() -> Status {
      check_neighbours();
      return {};
    });
  }
  if (*node_.members[node_.own].left != 0) say_goodbye();
  // A child that the program has forked off may still hold the connection.
  if (hub_) ::shutdown(hub_.get(), SHUT_RDWR);
  hub_ = {};
  over_ = true;
}

// Processes without descriptors, and words by which members leave, do not wake this thread.
int Lookout::next_look_ms() const {
  constexpr int look_period_ms = 100;
  const bool must_look = has_said_goodbye_ || std::ranges::any_of(neighbours_, [](const auto& n) {
                           return n.process.descriptor() < 0;
                         });
  return must_look ? look_period_ms : -1;
}

void Lookout::check_neighbours() {
  std::erase_if(neighbours_, [this](const Neighbour& neighbour) {
    if (!neighbour.process.has_ended()) return false;
    if (*neighbour.member->left == 0) report(neighbour.member->rank);
    return true;
  });
}

bool Lookout::has_everyone_left() const {
  return has_said_goodbye_ && std::ranges::all_of(neighbours_, [](const Neighbour& neighbour) {
           return *neighbour.member->left != 0;
         });
}

void Lookout::hear_hub() {
  auto* const into = reinterpret_cast<std::byte*>(&heard_) + heard_bytes_;
  const ssize_t got = ::recv(hub_.get(), into, sizeof heard_ - heard_bytes_, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    if (!hub_has_left_) note(0);
    hub_ = {};
    return;
  }
  heard_bytes_ += static_cast<std::size_t>(got);
  if (heard_bytes_ < sizeof heard_) return;
  heard_bytes_ = 0;
  heed(heard_);
}

void Lookout::heed(const Notice& notice) {
  if (notice.kind == Notice::lost) note(notice.rank);
  if (notice.kind == Notice::goodbye) hub_has_left_ = true;
}

void Lookout::say_goodbye() {
  if (std::exchange(has_said_goodbye_, true) || !hub_) return;
  std::ignore = send_notice(hub_.get(), {.kind = Notice::goodbye});
}

void Lookout::report(std::uint32_t rank) {
  note(rank);
  if (hub_) std::ignore = send_notice(hub_.get(), {.kind = Notice::lost, .rank = rank});
}

void Lookout::note(std::uint32_t rank) {
  std::uint32_t none = 0;
  node_.lost->compare_exchange_strong(none, rank + 1);
}

}  // namespace shima
