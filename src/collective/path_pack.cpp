// Members copy between their own memory and the agents' shared windows, in parallel and without
// system calls: for small pieces, and where process_vm_* is forbidden.
//
// Every member repeats a round: serve each newly opened window that contains its bytes; if it is an
// agent, move its finished windows to or from the file and open the next. When a round finds no
// work, it sleeps until something changes. Agents and members run in the same threads, so no step
// may block.
#include <array>

#include "base/clock.h"
#include "base/fault_point.h"
#include "collective/path_context.h"
#include "collective/walk.h"
#include "collective/window_io.h"
#include "group/shared_windows.h"
#include "ipc/staging_pool.h"

namespace shima {
namespace {

// A member's work with one agent's windows. After an error it continues to finish windows without
// copying, so that the agent is not blocked.
class Client {
 public:
  Client(PathContext& context, SharedWindows& windows, const Agent& agent, int agent_index)
      : context_(context),
        windows_(windows),
        agent_(agent_index),
        walk_(context.channel.rank(), context.mine(), context.file.layout(), agent.domains) {}

  [[nodiscard]] bool done() const { return done_; }
  [[nodiscard]] const Status& status() const { return status_; }

  // Serves open windows; returns whether there were any.
  bool step() {
    if (done_) return false;
    const bool was_closed = windows_.closed(agent_);
    bool busy = false;
    for (int side = 0; side < 2; ++side) {
      std::uint32_t& seen = seen_[static_cast<std::size_t>(side)];
      const auto window = windows_.look(agent_, side, seen);
      if (!window) continue;
      MemberWalk& walk = walk_.in(window->domain);
      const bool has_bytes = walk.has_below(window->range.end);
      if (has_bytes && walk.next() < window->range.begin) continue;  // the other side comes first
      seen = window->serial;
      if (!has_bytes) continue;
      busy = true;
      if (status_) status_ = copy(*window, walk);
      if (!status_) walk.skip_below(window->range.end);
      windows_.finish(*window, status_.has_value());
    }
    done_ = was_closed && !busy;
    return busy;
  }

 private:
  Status copy(const OpenWindow& window, MemberWalk& walk) {
    const ScopedTimer timer(context_.counters.gather_ns);
    fault_point(FaultPhase::gather);
    SHIMA_TRY_ASSIGN(const std::span<std::byte> memory, windows_.memory(agent_));
    const std::uintptr_t start =
        reinterpret_cast<std::uintptr_t>(memory.data()) +
        static_cast<std::uintptr_t>(window.side) * context_.plan.window_bytes -
        static_cast<std::uintptr_t>(window.range.begin.value);
    return walk.walk_below(window.range.end, [&](const StripPair& pair) -> Status {
      if (context_.direction == Direction::write) {
        copy_strips(start, 0, pair);
      } else {
        copy_strips(0, start, swapped(pair));
      }
      return {};
    });
  }

  PathContext& context_;
  SharedWindows& windows_;
  int agent_;
  AgentWalk walk_;
  std::array<std::uint32_t, 2> seen_{};
  bool done_ = false;
  Status status_;
};

// An agent's work with its own two windows, which it uses in turn.
class Server {
 public:
  Server(PathContext& context, SharedWindows& windows, const Agent& agent)
      : context_(context),
        windows_(windows),
        walk_(context.posts, context.file.layout(), context.plan, agent),
        sides_{Side(context), Side(context)} {}

  void start() {
    auto staging = Staging::borrow(context_.channel.staging(), 2 * context_.plan.window_bytes);
    if (!staging) {
      status_ = std::unexpected(staging.error());
      return finish();
    }
    context_.staging = *std::move(staging);
    windows_.show_staging(context_.staging.ref());
  }

  [[nodiscard]] bool done() const { return done_; }
  [[nodiscard]] const Status& status() const { return status_; }
  [[nodiscard]] FileOffset end_of_file() const { return end_of_file_; }

  // Processes the window whose turn it is, if its members have finished; returns whether they had.
  bool step() {
    if (done_ || !windows_.finished(turn_)) return false;
    Side& side = sides_[static_cast<std::size_t>(turn_)];
    if (side.open && context_.direction == Direction::write && status_)
      status_ = windows_.spoiled(turn_) ? lacks_bytes() : side.io.write_marked(data());
    side.open = false;
    if (!status_) exhausted_ = true;
    if (!exhausted_) side.open = open_next(side);
    turn_ = 1 - turn_;
    if (!sides_[0].open && !sides_[1].open && exhausted_) finish();
    return true;
  }

 private:
  struct Side {
    explicit Side(const PathContext& context) : io(context) {}
    WindowIo io;
    bool open = false;
  };

  void finish() {
    done_ = true;
    windows_.close();
  }

  static Status lacks_bytes() {
    return fail(Code::no_memory, "a collective write: another process failed to provide its bytes");
  }

  std::byte* data() {
    return context_.staging.data() + static_cast<std::size_t>(turn_) * context_.plan.window_bytes;
  }

  // Opens the next window on this side; returns false if there is none left.
  bool open_next(Side& side) {
    while (const auto found = walk_.next_window()) {
      Window window = *found;
      side.io.begin(window);
      const std::vector<MemberWalk*> members = walk_.members_in(window);
      for (const MemberWalk* member : members)
        member->look_below(window.range.end, [&](const Strip& s) { side.io.mark(s); });
      if (context_.direction == Direction::read && !read_ahead(side, window)) break;
      std::uint32_t count = 0;
      for (MemberWalk* member : members) {
        if (member->has_below(window.range.end)) ++count;
        member->skip_below(found->range.end);
      }
      if (window.range.empty()) continue;
      windows_.open(turn_, window.domain, window.range, count);
      return true;
    }
    exhausted_ = true;
    return false;
  }

  // Fills the window from the file and cuts it at the end of the file.
  bool read_ahead(Side& side, Window& window) {
    const auto end = side.io.read_marked(data());
    if (!end) {
      status_ = std::unexpected(end.error());
      return false;
    }
    if (*end >= window.range.end) return true;
    window.range.end = *end;
    end_of_file_ = std::min(end_of_file_, side.io.end_of_file());
    walk_.stop_at(end_of_file_);
    return true;
  }

  PathContext& context_;
  SharedWindows& windows_;
  DomainWalk walk_;
  std::array<Side, 2> sides_;
  int turn_ = 0;
  bool exhausted_ = false;
  bool done_ = false;
  Status status_;
  FileOffset end_of_file_ = no_end_of_file;
};

Status first_error(std::span<const Client> clients, const Status& other) {
  for (const Client& client : clients)
    if (!client.status()) return client.status();
  return other;
}

// Repeats rounds over the clients and the server until all are done, or a member has quit.
Status go_round(Channel& channel, SharedWindows& windows, std::span<Client> clients,
                Server* server) {
  Sleeper sleeper(windows.hooks());
  while (true) {
    const std::uint32_t state = windows.state();
    bool busy = false;
    bool done = server == nullptr || server->done();
    for (Client& client : clients) {
      busy = client.step() || busy;
      done = done && client.done();
    }
    if (server != nullptr) busy = server->step() || busy;
    if (done) return {};
    if (busy) continue;
    if (channel.transfer_quit()) return {};
    fault_point(FaultPhase::wait);
    SHIMA_TRY(windows.sleep(sleeper, state));
  }
}

}  // namespace

Result<FileOffset> run_pack(PathContext& context) {
  ++context.counters.path_pack;
  SharedWindows& windows = *context.channel.windows();
  std::optional<Server> server;
  if (const Agent* agent = context.my_agent(); agent != nullptr) {
    server.emplace(context, windows, *agent);
    server->start();
  }
  std::vector<Client> clients;
  clients.reserve(context.plan.agents.size());
  for (const Agent& agent : context.plan.agents)
    clients.emplace_back(context, windows, agent, agent.rank);
  SHIMA_TRY(go_round(context.channel, windows, clients, server ? &*server : nullptr));
  SHIMA_TRY(first_error(clients, server ? server->status() : Status{}));
  return server ? server->end_of_file() : no_end_of_file;
}

}  // namespace shima
