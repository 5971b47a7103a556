#include "collective/agent_server.h"

#include <algorithm>

namespace shima {

AgentServer::AgentServer(PathContext& context, int agent, std::vector<Domain> domains,
                         std::span<const int> guest_masters)
    : context_(context),
      agent_(agent),
      domains_(std::move(domains)),
      near_(context, WindowRole::agent),
      guests_(context, guest_masters, domains_),
      walk_(context.near, context.file.layout(), context.plan.window_bytes, domains_),
      sides_{Side(context), Side(context)} {}

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
      SHIMA_TRY(unpack_runs(message.runs, to.window.range.end, message.data, near_.image(index)));
    }
  }
}

Result<bool> AgentServer::advance(int index) {
  Side& at = side(index);
  const bool was_idle = at.state == State::idle;
  if (was_idle) {
    SHIMA_TRY_ASSIGN(const bool opened, open_next(index));
    if (!opened) return false;
  }
  if (at.state == State::collecting) {
    if (!can_complete(index)) return was_idle;
    SHIMA_TRY(complete(index));
    return true;
  }
  if (!near_.is_done(index)) return false;
  at.state = State::idle;
  return true;
}

// Windows are completed in order: guests expect replies in the order of their windows.
bool AgentServer::can_complete(int index) {
  const bool is_first = std::ranges::none_of(sides_, [&](const Side& other) {
    return other.state == State::collecting && other.serial < side(index).serial;
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
  for (const MemberWalk* member : members)
    member->look_below(window.range.end, [&](const Strip& strip) { at.io.mark(strip); });
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

Status AgentServer::complete(int index) {
  Side& at = side(index);
  if (context_.direction == Direction::read) return read(index);
  SHIMA_TRY(near_.outcome(index));
  at.state = State::idle;
  return at.io.write_marked(near_.image(index));
}

Status AgentServer::read(int index) {
  Side& at = side(index);
  SHIMA_TRY_ASSIGN(const TargetOffset end, at.io.read_marked(near_.image(index)));
  if (end < at.window.range.end) {
    end_of_file_ = std::min(end_of_file_, at.io.end_of_file());
    walk_.stop_at(end_of_file_);
  }
  for (const GuestMessage& message : at.to_answer)
    SHIMA_TRY(guests_.reply(
        message, {id_of(at.window, context_.plan.window_bytes), end.value, end_of_file_.value},
        near_.image(index)));
  at.to_answer.clear();
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

}  // namespace shima
