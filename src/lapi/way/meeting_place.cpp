#include "lapi/way/meeting_place.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <cstring>
#include <tuple>

#include "base/log.h"
#include "lapi/way/job_memory.h"

namespace shima::lapi {
namespace {

// A task's thread reads what it is told at once; one that is stopped may not stop the others.
void let_sends_wait(int socket) {
  ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) & ~O_NONBLOCK);
  close_if_unreachable(socket, node_timeout());
  const timeval limit{node_timeout().count(), 0};
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

bool is_sound(const MeetingNotice& notice) {
  return notice.tasks > 0 && notice.tasks <= most_tasks && notice.task >= 0 &&
         notice.task < notice.tasks && notice.context >= 0 && notice.context < contexts_of_job &&
         notice.address.endpoint_count <= ServiceAddress::most_endpoints;
}

}  // namespace

Result<std::unique_ptr<MeetingPlace>> MeetingPlace::start(std::span<const SocketAddress> addresses,
                                                          const ServerLimits& limits) {
  std::unique_ptr<MeetingPlace> place(new MeetingPlace);
  SHIMA_TRY_ASSIGN(place->server_, Server::start(addresses, limits, place->handlers()));
  return place;
}

Server::Handlers MeetingPlace::handlers() {
  static_assert(sizeof(MeetingNotice) <= Server::most_message_bytes);
  Server::Handlers made;
  made.message_bytes = sizeof(MeetingNotice);
  made.serve = [this](Server& server, Server::Visitor& visitor) { return serve(server, visitor); };
  made.welcome = [](Server&, Server::Visitor& visitor) {
    let_sends_wait(visitor.socket.get());
    return true;
  };
  made.bid_farewell = [this](Server& server, Server::Visitor& visitor) {
    end(server, std::exchange(visitor.mark, 0));
  };
  return made;
}

bool MeetingPlace::serve(Server& server, Server::Visitor& visitor) {
  MeetingNotice notice;
  std::memcpy(&notice, visitor.message.data(), sizeof notice);
  if (notice.format != meeting_format) return refuse_format(visitor, notice.format);
  const auto known = by_mark_.find(visitor.mark);
  if (known == by_mark_.end()) return serve_started(server, visitor, notice);
  const auto [number, task] = known->second;
  Context& context = contexts_[number];
  Member& member = context.members.at(task);
  switch (notice.kind) {
    case Kind::settled:
      settle(server, context, member, notice.memory);
      return true;
    case Kind::ask:
      if (const auto asked = context.members.find(notice.task); asked != context.members.end())
        tell(server, asked->second, {.kind = Kind::connect, .task = task});
      return true;
    case Kind::unreachable:
      if (const auto other = context.members.find(notice.task); other != context.members.end())
        tell(server, other->second, {.kind = Kind::lost, .task = task});
      return true;
    case Kind::goodbye:
      member.state = Kind::left;
      member.joined = {.kind = Kind::left, .task = task, .meetings = notice.meetings};
      tell_all(server, context, member.joined);
      forget_maker(server, context, member);
      return true;
    default:
      return false;
  }
}

// From a process that has not joined.
bool MeetingPlace::serve_started(Server& server, Server::Visitor& visitor,
                                 const MeetingNotice& notice) {
  const auto started = started_.find(visitor.mark);
  if (notice.kind == Kind::join) {
    if (started != started_.end()) started_.erase(started);
    return join(server, visitor, notice);
  }
  if (notice.kind == Kind::goodbye && started != started_.end()) {
    started->second.kind = Kind::left;
    return true;
  }
  if (notice.kind != Kind::started || visitor.mark != 0 || !is_sound(notice)) return false;
  visitor.mark = ++last_mark_;
  started_[visitor.mark] = {.kind = Kind::lost, .task = notice.task};
  return true;
}

// The connection of a process has ended that has not joined over it. Perhaps another process of the
// task has joined, or will.
void MeetingPlace::end_early(Server& server, const MeetingNotice& ended) {
  for (const auto& [mark, other] : started_)
    if (other.task == ended.task) return;
  for (const auto& [number, context] : contexts_)
    if (context.members.contains(ended.task)) return;
  ended_[ended.task] = ended;
  for (auto& [number, context] : contexts_) tell_all(server, context, ended);
}

bool MeetingPlace::refuse_format(Server::Visitor& visitor, std::uint64_t format) {
  std::ignore = send_notice(visitor.socket.get(), {.kind = Kind::refused});
  if (!std::exchange(has_refused_format_, true))
    log(LogLevel::error,
        "LAPI: a task of another version of Shima was refused (format {:#x}; this one has {:#x}); "
        "install one version on all hosts",
        format, meeting_format);
  return false;
}

// Tasks whose numbers contradict each other are no job: all of them are told.
bool MeetingPlace::join(Server& server, Server::Visitor& visitor, const MeetingNotice& notice) {
  if (!is_sound(notice)) return false;
  Context& context = contexts_[notice.context];
  const bool is_known = context.members.contains(notice.task) || ended_.contains(notice.task);
  if (context.tasks == 0) context.tasks = notice.tasks;
  if (!context.is_mismatched && (is_known || context.tasks != notice.tasks)) {
    context.is_mismatched = true;
    context.mismatch = {.kind = Kind::mismatch, .task = notice.task, .tasks = notice.tasks};
    tell_all(server, context, context.mismatch);
  }
  if (context.is_mismatched) {
    std::ignore = send_notice(visitor.socket.get(), context.mismatch);
    return false;
  }
  visitor.mark = ++last_mark_;
  by_mark_[visitor.mark] = {notice.context, notice.task};
  Member& member = context.members[notice.task];
  member.joined = {.kind = Kind::joined, .task = notice.task, .address = notice.address};
  member.host = notice.host;
  member.mark = visitor.mark;
  member.state = Kind::join;
  give_memory(server, context, member);
  return true;
}

// A task that finds a maker without memory yet is told once there is some.
void MeetingPlace::give_memory(Server& server, Context& context, Member& member) {
  Host& host = context.hosts[member.host];
  if (host.maker < 0) {
    host = {.maker = member.joined.task, .memory = {}};
    tell(server, member, {.kind = Kind::make});
  } else if (host.memory.kind != SharedRef::Kind::none) {
    tell(server, member, {.kind = Kind::map, .memory = host.memory});
  }
}

void MeetingPlace::settle(Server& server, Context& context, Member& member,
                          const SharedRef& memory) {
  if (member.state != Kind::join) return;
  for (const auto& [task, other] : context.members)
    if (other.state != Kind::join) tell(server, member, other.joined);
  for (const auto& [task, ended] : ended_) tell(server, member, ended);
  member.state = Kind::settled;
  tell_all(server, context, member.joined);
  Host& host = context.hosts[member.host];
  if (host.maker != member.joined.task || memory.kind == SharedRef::Kind::none) return;
  host.memory = memory;
  for (const auto& [task, other] : context.members)
    if (other.state == Kind::join && other.host == member.host)
      tell(server, other, {.kind = Kind::map, .memory = memory});
}

// A connection has ended.
void MeetingPlace::end(Server& server, std::uint32_t mark) {
  if (const auto started = started_.extract(mark)) return end_early(server, started.mapped());
  const auto known = by_mark_.find(mark);
  if (known == by_mark_.end()) return;
  const auto [number, task] = known->second;
  by_mark_.erase(known);
  Context& context = contexts_[number];
  Member& member = context.members.at(task);
  member.mark = 0;
  if (member.state == Kind::left) return;
  member.state = Kind::lost;
  member.joined = {.kind = Kind::lost, .task = task};
  tell_all(server, context, member.joined);
  forget_maker(server, context, member);
}

// The memory of a host can be mapped only while its maker lives: the next task makes another one,
// and reaches the tasks with the former over TCP.
void MeetingPlace::forget_maker(Server& server, Context& context, const Member& gone) {
  const auto found = context.hosts.find(gone.host);
  if (found == context.hosts.end() || found->second.maker != gone.joined.task) return;
  context.hosts.erase(found);
  for (auto& [task, other] : context.members)
    if (other.state == Kind::join && other.host == gone.host) give_memory(server, context, other);
}

void MeetingPlace::tell(Server& server, const Member& member, const MeetingNotice& notice) {
  if (member.mark == 0) return;
  server.for_each_client([&](Server::Visitor& visitor) {
    // Perhaps a part of it has been sent: what follows would be misread.
    if (visitor.mark == member.mark && !send_notice(visitor.socket.get(), notice))
      ::shutdown(visitor.socket.get(), SHUT_RDWR);
  });
}

void MeetingPlace::tell_all(Server& server, Context& context, const MeetingNotice& notice) {
  for (const auto& [task, member] : context.members)
    if (task != notice.task || notice.kind == Kind::mismatch) {
      if (member.state == Kind::settled || notice.kind == Kind::mismatch)
        tell(server, member, notice);
    }
}

}  // namespace shima::lapi
