// Members on several nodes: agents access the memory of members on their own node, the other
// members send and receive.
//
// Windows are aligned to a grid, so both ends of a message know which bytes it contains and only
// data is sent: for each window of an agent in which a remote member has bytes there is one
// message, in file order. A member keeps at most two messages per agent in flight; an agent works
// on one window while the messages of the next arrive. Each rank polls its pending operations and
// sleeps when none has progressed, or ends when a member has quit; the messenger then completes the
// messages in flight (Channel::wait_for_transfers).
#include <array>
#include <deque>

#include "base/clock.h"
#include "base/fault_point.h"
#include "collective/path_context.h"
#include "collective/reach_member.h"
#include "collective/walk.h"
#include "collective/window_io.h"
#include "group/messenger.h"
#include "ipc/staging_pool.h"

namespace shima {
namespace {

constexpr std::size_t messages_under_way = 2;

bool needs_messages(const PathContext& context, int a, int b) {
  if (a == b) return false;
  const auto& members = context.channel.members();
  const bool one_node =
      members[static_cast<std::size_t>(a)].node == members[static_cast<std::size_t>(b)].node;
  return !one_node || !context.channel.can_pull();
}

void count_wire(const PathContext& context, int other, std::uint64_t len_bytes) {
  const auto& members = context.channel.members();
  const int here = members[static_cast<std::size_t>(context.channel.rank())].node;
  if (members[static_cast<std::size_t>(other)].node != here)
    context.counters.wire_bytes += len_bytes;
}

struct Parcel {
  Messenger::Ticket ticket;
  Window window;
};

// The messages between this member and one remote agent.
class Client {
 public:
  Client(PathContext& context, const Agent& agent)
      : context_(context),
        agent_(agent),
        walk_(context.channel.rank(), context.mine(), context.file.layout(), agent.domains),
        posted_(walk_) {}

  [[nodiscard]] bool done() const { return parcels_.empty() && !next_window(); }

  Result<bool> step() {
    bool busy = false;
    while (parcels_.size() < messages_under_way) {
      const auto window = next_window();
      if (!window) break;
      fault_point(FaultPhase::gather);
      SHIMA_TRY(context_.direction == Direction::write ? send(*window) : receive(*window));
      busy = true;
    }
    if (parcels_.empty()) return busy;
    SHIMA_TRY_ASSIGN(const auto data, context_.channel.messenger()->done(parcels_.front().ticket));
    if (!data) return busy;
    if (context_.direction == Direction::read) unpack(parcels_.front().window, *data);
    parcels_.pop_front();
    return true;
  }

 private:
  [[nodiscard]] std::optional<Window> next_window() const {
    return posted_.next_window(context_.plan.window_bytes);
  }

  Status send(const Window& window) {
    Messenger::Buffer data(bytes_in(window));
    auto to = reinterpret_cast<std::uintptr_t>(data.data());
    SHIMA_TRY(posted_.in(window.domain)
                  .walk_below(window.range.end, [&](const StripPair& pair) -> Status {
                    copy_strips(to, 0,
                                {0, pair.b_offset, as_signed(pair.len_bytes), pair.b_stride_bytes,
                                 pair.len_bytes, pair.count});
                    to += pair.len_bytes * pair.count;
                    return {};
                  }));
    count_wire(context_, agent_.rank, data.size());
    Parcel& parcel = parcels_.emplace_back(Messenger::Ticket{0}, window);
    SHIMA_TRY_ASSIGN(parcel.ticket,
                     context_.channel.messenger()->send(agent_.rank, std::move(data)));
    return {};
  }

  Status receive(const Window& window) {
    const std::uint64_t len_bytes = bytes_in(window);
    posted_.in(window.domain).skip_below(window.range.end);
    Parcel& parcel = parcels_.emplace_back(Messenger::Ticket{0}, window);
    SHIMA_TRY_ASSIGN(parcel.ticket, context_.channel.messenger()->receive(agent_.rank, len_bytes));
    return {};
  }

  std::uint64_t bytes_in(const Window& window) {
    return posted_.in(window.domain).bytes_below(window.range.end);
  }

  // Copies received data to memory; a short message ends at the end of the file.
  void unpack(const Window& window, std::span<const std::byte> data) {
    auto from = reinterpret_cast<std::uintptr_t>(data.data());
    std::uint64_t len_bytes = data.size();
    std::ignore =
        walk_.in(window.domain).walk_below(window.range.end, [&](const StripPair& pair) -> Status {
          for (std::uint64_t i = 0; i < pair.count && len_bytes > 0; ++i) {
            const std::uint64_t len = std::min(pair.len_bytes, len_bytes);
            copy_strips(0, from,
                        {pair.b_offset + as_signed(i) * pair.b_stride_bytes, 0, 0, 0, len, 1});
            from += len;
            len_bytes -= len;
          }
          return {};
        });
  }

  PathContext& context_;
  const Agent& agent_;
  AgentWalk walk_;    // data copied (reads)
  AgentWalk posted_;  // messages posted
  std::deque<Parcel> parcels_;
};

// One window of an agent and its messages.
struct Side {
  explicit Side(const PathContext& context) : io(context) {}

  struct Guest {
    MemberWalk walk;
    std::uint64_t len_bytes = 0;
    Messenger::Buffer data;  // of a write, after it has arrived
    Messenger::Ticket ticket = 0;
    bool under_way = false;
  };

  WindowIo io;
  TargetRange window;
  std::vector<MemberWalk> locals;
  std::vector<Guest> guests;
  bool open = false;
};

class Server {
 public:
  Server(PathContext& context, const Agent& agent)
      : context_(context),
        walk_(context.posts, context.file.layout(), context.plan, agent),
        sides_{Side(context), Side(context)} {}

  void start() {
    auto staging = Staging::borrow(context_.channel.staging(), 2 * context_.plan.window_bytes);
    if (staging) {
      context_.staging = *std::move(staging);
    } else {
      status_ = std::unexpected(staging.error());
    }
  }

  [[nodiscard]] bool done() const { return exhausted_ && !sides_[0].open && !sides_[1].open; }
  [[nodiscard]] const Status& status() const { return status_; }
  [[nodiscard]] FileOffset end_of_file() const { return end_of_file_; }

  Result<bool> step() {
    if (done()) return false;
    Side& side = sides_[turn_];
    SHIMA_TRY_ASSIGN(const bool ready, messages_done(side));
    if (!ready) return false;
    if (side.open && context_.direction == Direction::write && status_) status_ = write(side);
    side.open = false;
    if (!exhausted_) SHIMA_TRY(open_next(side));
    turn_ = 1 - turn_;
    return true;
  }

 private:
  std::byte* data() { return context_.staging.data() + turn_ * context_.plan.window_bytes; }

  Result<bool> messages_done(Side& side) {
    for (Side::Guest& guest : side.guests) {
      if (!guest.under_way) continue;
      SHIMA_TRY_ASSIGN(auto data, context_.channel.messenger()->done(guest.ticket));
      if (!data) return false;
      guest.data = *std::move(data);
      guest.under_way = false;
    }
    return true;
  }

  Status open_next(Side& side) {
    const auto window = walk_.next_window();
    exhausted_ = !window.has_value();
    if (exhausted_) return {};
    side.window = window->range;
    side.open = true;
    side.locals.clear();
    side.guests.clear();
    side.io.begin(*window);
    for (MemberWalk* member : walk_.members_in(*window)) {
      member->look_below(window->range.end, [&](const Strip& s) { side.io.mark(s); });
      if (needs_messages(context_, member->rank(), context_.channel.rank())) {
        side.guests.push_back({*member, member->bytes_below(window->range.end), {}, 0, false});
      } else {
        side.locals.push_back(*member);
      }
      member->skip_below(window->range.end);
    }
    return context_.direction == Direction::write ? receive(side) : read(side);
  }

  Status receive(Side& side) {
    for (Side::Guest& guest : side.guests) {
      SHIMA_TRY_ASSIGN(guest.ticket,
                       context_.channel.messenger()->receive(guest.walk.rank(), guest.len_bytes));
      guest.under_way = true;
    }
    return {};
  }

  Status write(Side& side) {
    const WindowMemory window{data(), side.window.begin};
    {
      const ScopedTimer timer(context_.counters.gather_ns);
      fault_point(FaultPhase::gather);
      for (MemberWalk& local : side.locals)
        SHIMA_TRY(reach_member(context_, local, side.window.end, Direction::read, window));
      for (Side::Guest& guest : side.guests)
        copy_guest(guest.walk, guest.data, side.window.end, window, true);
    }
    return side.io.write_marked(data());
  }

  // Reads the window and sends each guest its part; on failure the guests get empty messages.
  Status read(Side& side) {
    TargetOffset end = side.window.begin;
    if (status_) {
      const auto found = side.io.read_marked(data());
      if (!found) status_ = std::unexpected(found.error());
      if (found) end = *found;
      if (found && end < side.window.end)
        end_of_file_ = std::min(end_of_file_, side.io.end_of_file());
    }
    const WindowMemory window{data(), side.window.begin};
    for (Side::Guest& guest : side.guests) {
      Messenger::Buffer data(guest.walk.bytes_below(end));
      copy_guest(guest.walk, data, end, window, false);
      count_wire(context_, guest.walk.rank(), data.size());
      SHIMA_TRY_ASSIGN(guest.ticket,
                       context_.channel.messenger()->send(guest.walk.rank(), std::move(data)));
      guest.under_way = true;
    }
    const ScopedTimer timer(context_.counters.gather_ns);
    fault_point(FaultPhase::gather);
    for (MemberWalk& local : side.locals) {
      const Status moved = reach_member(context_, local, end, Direction::write, window);
      if (!moved) status_ = moved;
    }
    return {};
  }

  // Copies between a guest's message, which is contiguous, and the window.
  static void copy_guest(const MemberWalk& walk, Messenger::Buffer& data, TargetOffset end,
                         const WindowMemory& window, bool into_window) {
    auto message = reinterpret_cast<std::uintptr_t>(data.data());
    walk.look_below(end, [&](const Strip& strip) {
      const StripPair pair{strip.offset,       0,
                           strip.stride_bytes, as_signed(strip.len_bytes),
                           strip.len_bytes,    strip.count};
      if (into_window) {
        copy_strips(window.base(), message, pair);
      } else {
        copy_strips(message, window.base(), swapped(pair));
      }
      message += strip.len_bytes * strip.count;
    });
  }

  PathContext& context_;
  DomainWalk walk_;
  std::array<Side, 2> sides_;
  std::size_t turn_ = 0;
  bool exhausted_ = false;
  Status status_;
  FileOffset end_of_file_ = no_end_of_file;
};

Status go_round(PathContext& context, std::deque<Client>& clients, Server* server) {
  Messenger& messenger = *context.channel.messenger();
  while (true) {
    bool busy = false;
    bool done = server == nullptr || server->done();
    for (Client& client : clients) {
      SHIMA_TRY_ASSIGN(const bool moved, client.step());
      busy = busy || moved;
      done = done && client.done();
    }
    if (server != nullptr) {
      SHIMA_TRY_ASSIGN(const bool moved, server->step());
      busy = busy || moved;
    }
    if (done) return {};
    if (busy) {
      messenger.moved();
    } else if (context.channel.transfer_quit()) {
      return {};
    } else {
      const ScopedTimer timer(context.counters.wait_ns);
      fault_point(FaultPhase::wait);
      messenger.rest();
    }
  }
}

}  // namespace

Result<FileOffset> run_message(PathContext& context) {
  ++context.counters.path_message;
  std::optional<Server> server;
  if (const Agent* agent = context.my_agent(); agent != nullptr) {
    server.emplace(context, *agent);
    server->start();
  }
  std::deque<Client> clients;
  for (const Agent& agent : context.plan.agents)
    if (needs_messages(context, agent.rank, context.channel.rank()))
      clients.emplace_back(context, agent);
  SHIMA_TRY(go_round(context, clients, server ? &*server : nullptr));
  if (!server) return no_end_of_file;
  SHIMA_TRY(server->status());
  return server->end_of_file();
}

}  // namespace shima
