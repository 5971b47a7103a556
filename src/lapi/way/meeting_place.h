// The server at which the tasks of a job over several hosts meet (lapi/way/meeting.h).
//
// It knows every task that has joined, for each context, and processes that have not joined yet.
// Its thread alone uses what it knows.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "lapi/way/meeting.h"
#include "net/server.h"

namespace shima::lapi {

class MeetingPlace {
 public:
  [[nodiscard]] static Result<std::unique_ptr<MeetingPlace>> start(
      std::span<const SocketAddress> addresses, const ServerLimits& limits = usual_limits());
  [[nodiscard]] const ServiceAddress& address() const { return server_->address(); }
  [[nodiscard]] static ServerLimits usual_limits() {
    return {.most_clients = SIZE_MAX / 2, .idle_timeout = {}};
  }

 private:
  using Kind = MeetingNotice::Kind;
  struct Member {
    MeetingNotice joined;  // what others are told
    HostName host{};
    std::uint32_t mark = 0;   // of its connection
    Kind state = Kind::none;  // join, settled, left or lost
  };
  // The memory of a host in a context.
  struct Host {
    int maker = -1;
    SharedRef memory;  // kind none: not yet made
  };
  struct Context {
    int tasks = 0;
    bool is_mismatched = false;
    MeetingNotice mismatch;
    std::map<int, Member> members;
    std::map<HostName, Host> hosts;
  };

  MeetingPlace() = default;
  [[nodiscard]] Server::Handlers handlers();
  [[nodiscard]] bool serve(Server& server, Server::Visitor& visitor);
  [[nodiscard]] bool refuse_format(Server::Visitor& visitor, std::uint64_t format);
  [[nodiscard]] bool serve_started(Server& server, Server::Visitor& visitor,
                                   const MeetingNotice& notice);
  void end_early(Server& server, const MeetingNotice& ended);
  [[nodiscard]] bool join(Server& server, Server::Visitor& visitor, const MeetingNotice& notice);
  void give_memory(Server& server, Context& context, Member& member);
  void settle(Server& server, Context& context, Member& member, const SharedRef& memory);
  void end(Server& server, std::uint32_t mark);
  void forget_maker(Server& server, Context& context, const Member& gone);
  void tell(Server& server, const Member& member, const MeetingNotice& notice);
  void tell_all(Server& server, Context& context, const MeetingNotice& notice);

  bool has_refused_format_ = false;  // and said so
  std::uint32_t last_mark_ = 0;
  std::map<std::uint32_t, std::pair<int, int>> by_mark_;  // context and task of a connection
  std::map<int, Context> contexts_;
  // By connection: what others are told if it ends and the task has not joined.
  std::map<std::uint32_t, MeetingNotice> started_;
  std::map<int, MeetingNotice> ended_;  // tasks that never join
  std::unique_ptr<Server> server_;
};

}  // namespace shima::lapi
