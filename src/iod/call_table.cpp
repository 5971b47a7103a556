#include "iod/call_table.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <tuple>
#include <utility>

#include "base/fault_point.h"
#include "collective/agent_server.h"
#include "group/solo_channel.h"

namespace shima::iod {
namespace {

constexpr std::size_t most_given_up = 256;  // of a user

// The agent of one subfile: it has no near members, and its file is the subfile.
class Agent {
 public:
  Agent(const DirectedCall& call, const CallTable::Seat& seat, FairQueue& queue,
        Messenger& messenger, int bell)
      : seat_(seat),
        counted_bytes_(moved_bytes()),
        disk_([] {}, [bell] { ::eventfd_write(bell, 1); },
              [this, &queue](const Aside::Work& move_window) {
                const FairQueue::Place place = queue.enter(seat_.from.process);
                fault_point(FaultPhase::iod_window);
                const Status status = move_window();
                count_window();
                return status;
              }),
        context_{call.writes != 0 ? Direction::write : Direction::read,
                 plan_,
                 no_access_,
                 {},
                 channel_,
                 seat.file,
                 counters_,
                 staging_,
                 disk_,
                 &messenger} {
    plan_.path = Path::message;
    plan_.near = NearPath::pull;
    plan_.window_bytes = call.window_bytes;
    plan_.granule_bytes = call.granule_bytes;
    plan_.direct = seat.direct;
    server_ = std::make_unique<AgentServer>(context_, 0, std::vector<Domain>{{0, call.range}},
                                            static_cast<int>(call.participants));
  }

  [[nodiscard]] AgentServer& server() { return *server_; }
  [[nodiscard]] bool waits_for_disk() { return !disk_.ended(); }
  // After the end of the server.
  [[nodiscard]] CallEnd moved() {
    server_.reset();  // adds the counters of the disk's thread
    return {.is_from_agent = 1,
            .windows = counters_.windows,
            .runs = counters_.runs,
            .disk_bytes = counters_.disk_bytes_written + counters_.disk_bytes_read};
  }

 private:
  [[nodiscard]] std::uint64_t moved_bytes() const {
    std::uint64_t sum = 0;
    for (const SubfileTally& one : seat_.file.tallies()) sum += one.bytes_written + one.bytes_read;
    return sum;
  }
  void count_window() {
    const std::uint64_t before = std::exchange(counted_bytes_, moved_bytes());
    seat_.moved(counted_bytes_ - before);
  }

  const CallTable::Seat& seat_;
  std::uint64_t counted_bytes_;
  Plan plan_;
  Post no_access_;
  SoloChannel channel_;
  Counters counters_;
  WindowStaging staging_;
  Aside disk_;
  PathContext context_;
  std::unique_ptr<AgentServer> server_;
};

bool has_left(const MessageStream& stream) { return !stream.status(); }

// Waits until the client ends the connection, so that it can read what it was told last.
void drain(int socket) {
  std::array<std::byte, 65536> dropped{};
  ::shutdown(socket, SHUT_WR);
  while (::recv(socket, dropped.data(), dropped.size(), 0) > 0) {
  }
}

}  // namespace

Result<CallEnd> CallTable::take_part(const DirectedCall& call, const Seat& seat) {
  SHIMA_TRY_ASSIGN(Outcome outcome, take_part_until_told(call, seat));
  if (outcome.status) return outcome.moved;
  drain(seat.from.socket);
  return std::unexpected(outcome.status.error());
}

Result<CallTable::Outcome> CallTable::take_part_until_told(const DirectedCall& call,
                                                           const Seat& seat) {
  Joined mine(seat);
  const Key key{seat.identity.device, seat.identity.inode, call.id};
  Outcome outcome;
  const auto place = caught([&] { return join(key, call, mine); });
  if (!place) {
    outcome.status = std::unexpected(place.error());
  } else if (Call& common = *place->call; place->is_last) {
    fault_point(FaultPhase::iod_begun);
    end(key, common, cause_of(common, caught([&] { return lead(common, mine); })));
    outcome = {common.status, common.moved};
  } else {
    fault_point(FaultPhase::iod_joined);
    await_end(key, common, mine);
    outcome.status = common.status;
  }
  SHIMA_TRY(tell_end(mine, outcome.moved, outcome.status));
  return outcome;
}

Result<CallTable::Place> CallTable::join(const Key& key, const DirectedCall& call, Joined& joined) {
  if (!is_sound(call)) return fail(Code::io, "a malformed message: no such call", EPROTO);
  const std::lock_guard hold(mutex_);
  if (is_stopping_ || given_up_.has(key)) return gave_up();
  auto found = calls_.find(key);
  if (found == calls_.end()) {
    auto made = std::make_shared<Call>();
    made->what = call;
    made->ended = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!made->ended) return fail_errno(errno, "making an eventfd");
    found = calls_.emplace(key, std::move(made)).first;
  }
  Call& common = *found->second;
  if (common.what != call || common.is_running)
    return fail(Code::io, "a malformed message: another call", EPROTO);
  common.joined.push_back(&joined);
  common.is_running = common.joined.size() == call.participants;
  return Place{found->second, common.is_running};
}

// The threads that wait run no agent.
void CallTable::await_end(const Key& key, Call& call, const Joined& mine) {
  std::array<pollfd, 2> watched{
      {{mine.seat.from.socket, POLLRDHUP, 0}, {call.ended.get(), POLLIN, 0}}};
  while (watched[1].revents == 0) {
    if (::poll(watched.data(), watched.size(), -1) < 0 || watched[0].revents == 0) continue;
    watched[0].fd = -1;
    watched[0].revents = 0;
    give_up(key, call, mine.seat.from.process.user);
  }
  const std::lock_guard hold(mutex_);  // what the other thread has written is visible
}

// A client has left. A call that has not begun never will; else the agent notices.
void CallTable::give_up(const Key& key, Call& call, const std::string& user) {
  {
    const std::lock_guard hold(mutex_);
    if (call.is_running) return;
    // What remembering it may fail for keeps no client from its error.
    std::ignore = caught([&]() -> Status {
      given_up_.add(user, key);
      return {};
    });
    call.is_running = true;  // no client joins after this
  }
  end(key, call, gave_up());
}

void CallTable::GivenUp::add(const std::string& user, const Key& key) {
  std::deque<Key>& mine = of_user_[user];
  mine.push_back(key);
  all_.insert(key);
  if (mine.size() <= most_given_up) return;
  all_.erase(mine.front());
  mine.pop_front();
}

void CallTable::end(const Key& key, Call& call, Status status) {
  const std::lock_guard hold(mutex_);
  call.status = std::move(status);
  calls_.erase(key);
  ::eventfd_write(call.ended.get(), 1);
}

std::unexpected<Error> CallTable::gave_up() const {
  if (is_stopping_) return fail(Code::io, "a collective call: the I/O node is ending", ESHUTDOWN);
  return fail(Code::cancelled, "a collective call: another process has left it");
}

// What an agent that fails has not sent is in its windows, and ends before them. Messages that have
// begun are completed from copies, for which there is so much room; without, the connection ends.
class CallTable::UnsentMessages {
 public:
  UnsentMessages(const std::vector<Joined*>& joined, std::size_t room_bytes)
      : joined_(joined), room_bytes_(room_bytes) {}
  UnsentMessages(const UnsentMessages&) = delete;
  UnsentMessages& operator=(const UnsentMessages&) = delete;
  ~UnsentMessages() {
    for (Joined* const one : joined_) room_bytes_ -= one->stream.abandon_unsent(room_bytes_);
  }

 private:
  const std::vector<Joined*>& joined_;
  std::size_t room_bytes_;
};

// Takes the memory of the agent, and runs it.
Status CallTable::lead(Call& call, const Joined& mine) {
  const std::shared_ptr<Allowance>& memory = mine.seat.from.memory;
  const std::size_t needed_bytes = AgentServer::most_memory_bytes(call.what);
  if (needed_bytes > memory->most_bytes())
    return fail(Code::no_memory,
                fmt::format("a collective call may need {} bytes of memory at the I/O node, which "
                            "has {} for a key; smaller windows (cb_buffer_size) need less",
                            needed_bytes, memory->most_bytes()),
                ENOMEM);
  call.memory = std::make_unique<Allowed>(memory, needed_bytes);
  return run_agent(call, mine);
}

Status CallTable::run_agent(Call& call, const Joined& mine) {
  const UniqueFd bell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!bell) return fail_errno(errno, "making an eventfd");
  StreamMessenger messenger;
  for (std::size_t i = 0; i < call.joined.size(); ++i)
    messenger.add(static_cast<int>(i), call.joined[i]->stream);
  Agent agent(call.what, mine.seat, queue_, messenger, bell.get());
  const UnsentMessages unsent(call.joined, AgentServer::most_copies_bytes(call.what));
  AgentServer& server = agent.server();
  SHIMA_TRY(server.start());
  auto last_moved = Clock::now();
  while (!server.done()) {
    SHIMA_TRY_ASSIGN(const bool busy, server.step());
    if (busy || agent.waits_for_disk()) last_moved = Clock::now();
    if (busy) continue;
    if (Clock::now() - last_moved > patience_)
      return fail(Code::timed_out, "a collective call: a process does not send or receive",
                  ETIMEDOUT);
    messenger.sleep(std::min<std::chrono::nanoseconds>(patience_, std::chrono::seconds(1)),
                    bell.get());
    eventfd_t rings = 0;
    ::eventfd_read(bell.get(), &rings);
  }
  SHIMA_TRY(server.stop());
  fault_point(FaultPhase::iod_moved);
  call.moved = agent.moved();
  return {};
}

// Why the agent failed: the end of a connection is the cause of what follows from it.
Status CallTable::cause_of(const Call& call, Status status) const {
  // A stream that has no memory for what was unsent is a consequence of the failure.
  const bool left = std::ranges::any_of(call.joined, [](const Joined* one) {
    return has_left(one->stream) && one->stream.status().error().code != Code::no_memory;
  });
  return status || !left ? status : Status(gave_up());
}

Status CallTable::tell_end(Joined& mine, const CallEnd& moved, const Status& status) const {
  if (has_left(mine.stream)) return mine.stream.status();
  const std::uint64_t number = mine.stream.send(end_lane, encode_end(moved, status));
  const auto since = Clock::now();
  while (mine.stream.sent() <= number) {
    SHIMA_TRY(mine.stream.status());
    pollfd watched{mine.seat.from.socket, POLLOUT, 0};
    ::poll(&watched, 1, 100);
    mine.stream.send_pending();
    if (Clock::now() - since > patience_)
      return fail(Code::io, "telling the end of a collective call", ETIMEDOUT);
  }
  return {};
}

}  // namespace shima::iod
