#include "collective/subgroup_master.h"

#include <algorithm>
#include <cstring>

#include "base/fault_point.h"
#include "collective/message_io.h"

namespace shima {
namespace {

constexpr std::size_t most_spares = 4;  // messages whose memory is used again

}  // namespace

SubgroupMaster::SubgroupMaster(PathContext& context, std::span<const NearPost> subgroup,
                               std::span<const int> agents)
    : context_(context), near_(context, WindowRole::master), memory_(most_spares) {
  const Layout& layout = context.file.layout();
  for (const int agent : agents) {
    const std::vector<Domain> domains = context.plan.agents.domains_of(agent);
    const DomainWalk walk(subgroup, layout, context.plan.window_bytes, domains);
    served_.push_back({agent, context.plan.agents.rank_of(agent), domains, walk, walk, {}, {}, {}});
  }
}

Status SubgroupMaster::start() {
  if (!served_.empty()) SHIMA_TRY(near_.start());
  for (Served& served : served_) {
    const WindowRequest request{announce_next(served), announce_next(served)};
    fault_point(FaultPhase::request);
    SHIMA_TRY_ASSIGN(const auto ticket, send_value(context_, served.rank, Lane::request, request));
    requests_.push_back(ticket);
    SHIMA_TRY(await_grant(served));
  }
  return {};
}

// The next window in which the subgroup has bytes; no window after the last.
WindowId SubgroupMaster::announce_next(Served& served) {
  const auto window = served.ahead.next_window();
  if (!window) return {};
  for (MemberWalk* member : served.ahead.members_in(*window)) member->skip_below(window->range.end);
  const WindowId id = id_of(*window, context_.plan.window_bytes);
  served.announced.push_back(id);
  return id;
}

Status SubgroupMaster::await_grant(Served& served) {
  if (served.announced.empty()) return {};
  SHIMA_TRY_ASSIGN(served.grant, context_.messenger->receive(served.rank, Lane::grant,
                                                             MessageBuffer(sizeof(WindowGrant))));
  return {};
}

Result<bool> SubgroupMaster::step() {
  if (done_) return false;
  SHIMA_TRY(finish_sent(context_, requests_));
  SHIMA_TRY(finish_sent(context_, sent_));  // its memory is for the next ones
  SHIMA_TRY_ASSIGN(bool busy, take_grants());
  SHIMA_TRY_ASSIGN(const bool replied, take_replies());
  busy = busy || replied;
  for (int i = 0; i < side_count; ++i) {
    SHIMA_TRY_ASSIGN(const bool moved, advance(i));
    busy = busy || moved;
  }
  const bool all_granted =
      std::ranges::all_of(served_, [](const Served& served) { return !served.grant; });
  const bool idle =
      std::ranges::none_of(sides_, [](const Side& side) { return side.job != nullptr; });
  if (!has_asked() || !all_granted || !idle || !granted_.empty() || asked_ > 0) return busy;
  done_ = sent_.empty();
  if (done_) near_.close();
  return busy || done_;
}

Result<bool> SubgroupMaster::take_grants() {
  bool busy = false;
  for (Served& served : served_) {
    if (!served.grant) continue;
    SHIMA_TRY_ASSIGN(const auto message, context_.messenger->done(*served.grant));
    if (!message) continue;
    busy = true;
    served.grant.reset();
    std::span<const std::byte> bytes = message->bytes();
    SHIMA_TRY_ASSIGN(const auto grant, take_from<WindowGrant>(bytes));
    if (grant.window != served.announced.front())
      return fail(Code::internal, "a message of another node: a grant for another window");
    served.announced.pop_front();
    SHIMA_TRY_ASSIGN(Job job, job_for(served, grant.window));
    SHIMA_TRY(await_grant(served));
    if (context_.direction == Direction::read) {
      SHIMA_TRY(ask(std::move(job)));
    } else {
      granted_.push_back(std::move(job));
    }
  }
  return busy;
}

Result<SubgroupMaster::Job> SubgroupMaster::job_for(Served& served, const WindowId& id) {
  Job job;
  job.served = &served;
  SHIMA_TRY_ASSIGN(job.window, window_of(id, served.domains, context_.plan.window_bytes));
  job.ahead = announce_next(served);
  return job;
}

Status SubgroupMaster::ask(Job job) {
  job.runs.reset(job.window.range, context_.plan.granule_bytes);
  for (MemberWalk* member : job.served->walk.members_in(job.window)) {
    member->look_below(job.window.range.end, [&](const Strip& strip) { job.runs.mark(strip); });
    job.members.push_back(*member);
    member->skip_below(job.window.range.end);
  }
  SHIMA_TRY(send_runs(job));
  SHIMA_TRY_ASSIGN(job.reply, context_.messenger->receive(
                                  job.served->rank, Lane::reply,
                                  memory_.buffer(sizeof(ReplyHead) + job.runs.len_bytes())));
  job.served->asked.push_back(std::move(job));
  ++asked_;
  return {};
}

// Tells the agent which bytes of a window the subgroup wants.
Status SubgroupMaster::send_runs(const Job& job) {
  MessageBuffer message(sizeof(WindowHead) + runs_bytes(job.runs));
  std::span<std::byte> out = message.bytes();
  put_into(out, WindowHead{id_of(job.window, context_.plan.window_bytes), job.ahead});
  put_runs(out, job.runs);
  SHIMA_TRY_ASSIGN(const auto ticket,
                   send_message(context_, job.served->rank, Lane::to_agent, std::move(message)));
  sent_.push_back(ticket);
  return {};
}

MessageBuffer SubgroupMaster::message_for(const Job& job, std::size_t bytes,
                                          std::span<std::byte>& room) {
  const std::size_t len_bytes = sizeof(WindowHead) + runs_bytes(job.runs) + bytes;
  MessageBuffer message = bytes != 0 ? memory_.buffer(len_bytes) : MessageBuffer(len_bytes);
  room = message.bytes();
  put_into(room, WindowHead{id_of(job.window, context_.plan.window_bytes), job.ahead});
  put_runs(room, job.runs);
  return message;
}

// Sends the runs of a window and their bytes: those that were collected in the message, else if
// possible those in the window, which is in use then.
Status SubgroupMaster::send_bytes(Side& from, std::byte* image) {
  Job& job = *from.job;
  const TargetOffset end = job.window.range.end;
  std::vector<iovec> pieces;
  if (job.bytes.bytes().empty()) {
    pieces = pieces_to_send(context_, job.runs, end, image);
    std::span<std::byte> room;
    job.bytes = message_for(job, pieces.empty() ? job.runs.len_bytes() : 0, room);
    if (pieces.empty()) pack_runs(job.runs, end, image, room);
  }
  if (pieces.empty()) {
    SHIMA_TRY_ASSIGN(const auto ticket, send_message(context_, job.served->rank, Lane::to_agent,
                                                     std::move(job.bytes)));
    sent_.push_back(ticket);
    return {};
  }
  SHIMA_TRY_ASSIGN(from.sending, send_pieces(context_, job.served->rank, Lane::to_agent,
                                             std::move(job.bytes), pieces));
  return {};
}

Result<bool> SubgroupMaster::is_sent(Side& from) {
  if (!from.sending) return true;
  SHIMA_TRY_ASSIGN(const auto sent, context_.messenger->done(*from.sending));
  if (!sent) return false;
  from.sending.reset();
  return true;
}

// The replies of an agent are taken in order.
Result<bool> SubgroupMaster::take_replies() {
  bool busy = false;
  for (Served& served : served_) {
    while (!served.asked.empty()) {
      Job& job = served.asked.front();
      SHIMA_TRY_ASSIGN(auto message, context_.messenger->done(job.reply));
      if (!message) break;
      busy = true;
      job.bytes = *std::move(message);
      granted_.push_back(std::move(job));
      served.asked.pop_front();
      --asked_;
    }
  }
  return busy;
}

Result<bool> SubgroupMaster::advance(int index) {
  Side& at = side(index);
  const bool was_idle = !at.job;
  if (was_idle) {
    if (granted_.empty()) return false;
    at.job = std::make_unique<Job>(std::move(granted_.front()));
    at.serial = ++begun_;
    granted_.pop_front();
    SHIMA_TRY(context_.direction == Direction::write ? collect(index) : hand_out(index));
  }
  bool moved = was_idle;
  if (!at.sending) {
    if (!is_first(index) || !near_.is_done(index)) return moved;
    SHIMA_TRY(near_.outcome(index));
    if (context_.direction == Direction::write) SHIMA_TRY(send_bytes(at, near_.image(index)));
    moved = true;
  }
  SHIMA_TRY_ASSIGN(const bool sent, is_sent(at));
  if (sent) at.job.reset();
  return moved || sent;
}

// An agent expects its windows in order.
bool SubgroupMaster::is_first(int index) const {
  const std::uint64_t serial = sides_[static_cast<std::size_t>(index)].serial;
  return std::ranges::none_of(sides_, [&](const Side& other) {
    return other.job && !other.sending && other.serial < serial;
  });
}

Status SubgroupMaster::collect(int index) {
  Job& job = *side(index).job;
  job.runs.reset(job.window.range, context_.plan.granule_bytes);
  const std::vector<MemberWalk*> members = job.served->walk.members_in(job.window);
  for (const MemberWalk* member : members)
    member->look_below(job.window.range.end, [&](const Strip& strip) { job.runs.mark(strip); });
  if (near_.packs() || context_.messenger->sends_pieces() || !has_large_runs(job.runs))
    return near_.begin(index, job.served->agent, job.window, members);
  std::span<std::byte> room;
  job.bytes = message_for(job, job.runs.len_bytes(), room);
  SHIMA_TRY_ASSIGN(const auto runs, runs_in(job.runs, room));
  return near_.move_runs(runs, members);
}

Status SubgroupMaster::hand_out(int index) {
  Job& job = *side(index).job;
  std::span<const std::byte> bytes = job.bytes.bytes();
  SHIMA_TRY_ASSIGN(const auto head, take_from<ReplyHead>(bytes));
  if (head.window != id_of(job.window, context_.plan.window_bytes))
    return fail(Code::internal, "a message of another node: a reply for another window");
  if (head.end < 0 || head.end_of_file < 0)
    return fail(Code::internal, "a message of another node: a reply with a negative end");
  TargetOffset end{head.end};
  FileOffset end_of_file{head.end_of_file};
  if (end >= job.window.range.end && !near_.packs() && has_large_runs(job.runs)) {
    SHIMA_TRY_ASSIGN(const auto runs, runs_in(job.runs, bytes));
    std::vector<MemberWalk*> members;
    for (MemberWalk& member : job.members) members.push_back(&member);
    return near_.move_runs(runs, members);
  }
  SHIMA_TRY(unpack_runs(job.runs, end, bytes, near_.image(index)));
  if (end < job.window.range.end && context_.plan.agents.are_io_nodes()) {
    SHIMA_TRY_ASSIGN(end, end_beyond(end, job.window, near_.image(index)));
    end_of_file = end_of_file_;
  }
  if (end < job.window.range.end) job.served->ahead.stop_at(end_of_file);
  std::vector<MemberWalk*> members;
  for (MemberWalk& member : job.members)
    if (member.has_below(end)) members.push_back(&member);
  Window window = job.window;
  window.range.end = std::min(window.range.end, end);
  return near_.begin(index, job.served->agent, window, members);
}

// The end of the file in a window where an I/O node's subfile ends: other subfiles may continue the
// file. What lies between are zeros.
Result<TargetOffset> SubgroupMaster::end_beyond(TargetOffset found, const Window& window,
                                                std::byte* image) {
  const Layout& layout = context_.file.layout();
  if (!file_size_) {
    SHIMA_TRY_ASSIGN(file_size_, context_.file.size());
  }
  found = std::max(found, window.range.begin);
  const TargetOffset end =
      std::clamp(layout.below(window.subfile, *file_size_), found, window.range.end);
  std::memset(image + (found - window.range.begin), 0, as_unsigned(end - found));
  if (end < window.range.end)
    end_of_file_ = std::min({end_of_file_, *file_size_, layout.run_at(window.subfile, end).begin});
  return end;
}

}  // namespace shima
