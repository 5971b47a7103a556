#include "collective/agent_server.h"

#include <algorithm>

#include "base/clock.h"
#include "collective/message_io.h"

namespace shima {
namespace {

// Writing a window of this size costs more than to let a thread do it.
constexpr std::uint64_t least_aside_bytes = 64 * 1024;
constexpr std::size_t most_kept = 4;  // messages of a window

std::uint64_t largest_window_bytes(const DirectedCall& call) {
  return std::min(call.window_bytes, call.range.len_bytes());
}

}  // namespace

AgentServer::AgentServer(PathContext& context, int agent, std::vector<Domain> domains,
                         std::optional<int> requests)
    : context_(context),
      disk_context_{context.direction, context.plan,     context.mine,   context.near,
                    context.channel,   context.file,     disk_counters_, context.staging,
                    context.disk,      context.messenger},
      agent_(agent),
      domains_(std::move(domains)),
      near_(context, WindowRole::agent),
      guests_(context, requests, domains_),
      walk_(context.near, context.file.layout(), context.plan.window_bytes, domains_),
      sides_{Side(disk_context_), Side(disk_context_)} {}

AgentServer::~AgentServer() {
  std::ignore = stop();
  context_.counters.add(disk_counters_);
}

Result<bool> AgentServer::step() {
  if (done_) return false;
  SHIMA_TRY_ASSIGN(const bool have_come, guests_.have_come());
  if (!have_come) return false;
  SHIMA_TRY_ASSIGN(bool busy, take_messages());
  for (int i = 0; i < side_count; ++i) {
    SHIMA_TRY_ASSIGN(const bool moved, advance(i));
    busy = busy || moved;
  }
  if (!exhausted_ ||
      !std::ranges::all_of(sides_, [](const Side& s) { return s.state == State::idle; }))
    return busy;
  SHIMA_TRY_ASSIGN(done_, guests_.all_sent());
  if (done_) near_.close();
  return busy || done_;
}

Result<bool> AgentServer::take_messages() {
  bool busy = false;
  while (true) {
    SHIMA_TRY_ASSIGN(auto arrived, guests_.next_message());
    if (!arrived) return busy;
    busy = true;
    auto& [index, message] = *arrived;
    Side& to = side(index);
    to.io.mark(message.runs);
    if (context_.direction == Direction::read) {
      to.to_answer.push_back(std::move(message));
    } else {
      SHIMA_TRY(take_bytes(index, std::move(message)));
    }
  }
}

// Messages that stay take memory, and without the image their pieces must not overlap. Direct I/O
// needs the image, which is aligned.
Status AgentServer::take_bytes(int index, GuestMessage message) {
  Side& to = side(index);
  if (!to.has_image && !context_.plan.direct && to.pieces.count() < most_kept &&
      has_large_runs(message.runs))
    return to.pieces.add(std::move(message));
  to.has_image = true;
  return unpack_runs(message.runs, to.window.range.end, message.data, near_.image(index));
}

Status AgentServer::write(int index) {
  Side& at = side(index);
  if (!at.has_image && at.pieces.arrange()) {
    const ScopedTimer timer(disk_counters_.disk_ns);
    at.io.begin_write();
    return at.pieces.for_each_run(
        [&](TargetOffset begin, std::span<const iovec> run) { return at.io.write(begin, run); });
  }
  SHIMA_TRY(at.pieces.unpack(at.window.range, near_.image(index)));
  return at.io.write_marked(near_.image(index));
}

Status AgentServer::read(int index) {
  Side& at = side(index);
  at.end = at.window.range.end;
  if (may_send_from_file(at)) at.view = at.io.view();
  if (at.view) return {};
  SHIMA_TRY_ASSIGN(at.end, at.io.read_marked(near_.image(index)));
  return {};
}

// From the page cache, without a copy into the image, which would take as long as sending.
bool AgentServer::may_send_from_file(const Side& at) const {
  const auto is_sent_in_place = [&](const GuestMessage& message) {
    return has_large_runs(message.runs);
  };
  return at.near.empty() && !context_.plan.direct && context_.messenger->sends_pieces() &&
         std::ranges::all_of(at.to_answer, is_sent_in_place);
}

Result<bool> AgentServer::advance(int index) {
  Side& at = side(index);
  bool moved = false;
  if (at.state == State::idle) {
    SHIMA_TRY_ASSIGN(moved, open_next(index));
    if (!moved) return false;
  }
  if (at.state == State::collecting) {
    if (!can_move(index)) return moved;
    if (context_.direction == Direction::write) SHIMA_TRY(near_.outcome(index));
    start_disk(index);
    moved = true;
  }
  if (at.state == State::moving) {
    if (!context_.disk.ended()) return moved;
    SHIMA_TRY(complete(index));
    return true;
  }
  SHIMA_TRY_ASSIGN(const bool sent, send_replies(index));
  const bool all_sent = at.to_answer.empty() && at.sending.empty();
  if (sent || !all_sent || !near_.is_done(index)) return moved || sent;
  at.state = State::idle;
  at.view.reset();
  return true;
}

// Windows are moved in order: guests expect replies in the order of their windows.
bool AgentServer::can_move(int index) {
  const bool is_first = std::ranges::none_of(sides_, [&](const Side& other) {
    return other.state == State::moving ||
           (other.state == State::collecting && other.serial < side(index).serial);
  });
  return is_first && guests_.all_arrived(index) && near_.is_done(index);
}

// The first window in which a member near it or a guest has bytes. The walk ends its windows at the
// end of the file, once it is known; guests do not.
WindowId AgentServer::next_window() const {
  const auto near = walk_.next_window();
  const WindowId guests = guests_.next();
  if (!near) return guests;
  const WindowId first = id_of(*near, context_.plan.window_bytes);
  return guests.none() ? first : std::min(first, guests);
}

Result<bool> AgentServer::open_next(int index) {
  if (exhausted_ || !guests_.next_is_known()) return false;
  const WindowId id = next_window();
  exhausted_ = id.none();
  if (exhausted_) return true;
  SHIMA_TRY_ASSIGN(const Window window, window_of(id, domains_, context_.plan.window_bytes));
  Side& at = side(index);
  at.window = window;
  at.serial = ++opened_;
  at.state = State::collecting;
  at.io.begin(window);
  guests_.open(index, id);
  const std::vector<MemberWalk*> members = walk_.members_in(window);
  at.io.mark(members);
  at.has_image = !members.empty();
  if (context_.direction == Direction::write) {
    SHIMA_TRY(near_.begin(index, agent_, window, members));
    return true;
  }
  for (MemberWalk* member : members) {
    at.near.push_back(*member);
    member->skip_below(window.range.end);
  }
  return true;
}

void AgentServer::start_disk(int index) {
  side(index).state = State::moving;
  context_.disk.start(
      [this, index]() -> Status {
        if (context_.direction == Direction::write) return write(index);
        return read(index);
      },
      may_have_guests() && side(index).window.range.len_bytes() >= least_aside_bytes);
}

Status AgentServer::complete(int index) {
  SHIMA_TRY(context_.disk.wait());
  if (context_.direction == Direction::read) return answer(index);
  side(index).state = State::idle;
  side(index).pieces.clear();
  return {};
}

// Hands the bytes that were read out to near members; send_replies() sends them to guests.
Status AgentServer::answer(int index) {
  Side& at = side(index);
  const TargetOffset end = at.end;
  if (end < at.window.range.end) {
    end_of_file_ = std::min(end_of_file_, at.io.end_of_file());
    walk_.stop_at(end_of_file_);
  }
  at.head = {id_of(at.window, context_.plan.window_bytes), end.value, end_of_file_.value};
  std::vector<MemberWalk*> members;
  for (MemberWalk& member : at.near)
    if (member.has_below(end)) members.push_back(&member);
  Window window = at.window;
  window.range.end = std::min(window.range.end, end);
  SHIMA_TRY(near_.begin(index, agent_, window, members));
  at.near.clear();
  at.state = State::handing_out;
  return {};
}

// Sends the replies of a window, those of earlier windows first, as guests expect. If guests want
// the same small pieces, or are slow to take them, their replies are sent by turns: a further copy
// is made as long as the copies have less than a window's bytes, or when all have been sent.
Result<bool> AgentServer::send_replies(int index) {
  Side& at = side(index);
  SHIMA_TRY(finish_sent(context_, at.sending));
  if (at.sending.empty()) at.copied_bytes = 0;
  const bool is_first = std::ranges::none_of(sides_, [&](const Side& other) {
    return other.state == State::handing_out && other.serial < at.serial &&
           !other.to_answer.empty();
  });
  bool sent = false;
  while (is_first && !at.to_answer.empty() && at.copied_bytes < context_.plan.window_bytes) {
    SHIMA_TRY_ASSIGN(const Guests::Reply reply,
                     guests_.reply(at.to_answer.front(), at.head,
                                   at.view ? at.view->data() : near_.image(index)));
    at.sending.push_back(reply.ticket);
    at.copied_bytes += reply.copied_bytes;
    at.to_answer.pop_front();
    sent = true;
  }
  return sent;
}

// Of each side: less than a window's bytes, and then one more reply.
std::uint64_t AgentServer::most_copies_bytes(const DirectedCall& call) {
  return 2 * side_count * largest_window_bytes(call);
}

std::uint64_t AgentServer::most_memory_bytes(const DirectedCall& call) {
  const std::uint64_t window = largest_window_bytes(call);
  const std::uint64_t runs = most_runs_bytes(window, call.granule_bytes);  // also as a Coverage
  const std::uint64_t sides = side_count * (call.window_bytes + runs);
  if (call.writes != 0)
    return sides + (Guests::most_granted + side_count * most_kept) * (window + 2 * runs);
  const std::uint64_t replies = std::uint64_t{call.participants} * side_count;
  // Of a reply that is sent from its place.
  const std::uint64_t pieces = window / large_run_bytes * sizeof(iovec);
  return sides + Guests::most_granted * runs + replies * (runs + pieces) + most_copies_bytes(call);
}

}  // namespace shima
