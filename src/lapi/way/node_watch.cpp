// The watching thread of NodeTransport.
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

#include "base/process/quiet_thread.h"
#include "lapi/way/node_transport.h"

namespace shima::lapi {

Status NodeTransport::watch(std::function<void(int)> on_lost) {
  if (memory_.tasks() == 1 || options_.same_process) return {};
  on_lost_ = std::move(on_lost);
  wake_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_) return fail_errno(errno, "creating an eventfd");
  SHIMA_TRY_ASSIGN(watcher_, start_quiet_thread([this] { run(); }));
  return {};
}

void NodeTransport::look_again() {
  const std::uint64_t once = 1;
  if (wake_) std::ignore = ::write(wake_.get(), &once, sizeof once);
}

void NodeTransport::run() {
  while (!stopping_) sleep(look_at_peers());
}

// Returns whether a process must be looked at by the clock, because the kernel gives no pidfd.
bool NodeTransport::look_at_peers() {
  bool by_clock = false;
  for (int task = 0; task < memory_.tasks(); ++task) {
    Peer& peer = peers_[static_cast<std::size_t>(task)];
    if (task == task_ || peer.lost) continue;
    if (standing(task) == Standing::running) {
      if (!peer.watched) peer.process = ProcessHandle::anyway(memory_.mailbox(task).process);
      peer.watched = true;
      by_clock |= peer.process.descriptor() < 0;
      if (!peer.process.has_ended()) continue;
    } else if (standing(task) != Standing::lost) {
      continue;
    }
    peer.lost = true;
    bell().ring_all();
    if (standing(task) == Standing::lost && on_lost_) on_lost_(task);
  }
  return by_clock;
}

void NodeTransport::sleep(bool by_clock) {
  std::vector<pollfd> watched{{wake_.get(), POLLIN, 0}};
  for (int task = 0; task < memory_.tasks(); ++task) {
    const Peer& peer = peers_[static_cast<std::size_t>(task)];
    if (peer.watched && !peer.lost && standing(task) == Standing::running)
      watched.push_back({peer.process.descriptor(), POLLIN, 0});
  }
  constexpr int by_clock_ms = 200;
  ::poll(watched.data(), watched.size(), by_clock ? by_clock_ms : -1);
  std::uint64_t rings = 0;
  std::ignore = ::read(wake_.get(), &rings, sizeof rings);
}

}  // namespace shima::lapi
