// Receives the requests of one client, has them executed, and replies, until the connection ends.
//
// Memory for a request is taken before a place in the queue, and a place is held only while a
// request is executed: not while its data arrive, nor while the client takes the reply.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "iod/call_table.h"
#include "iod/client.h"
#include "iod/fair_queue.h"
#include "iod/inbox.h"
#include "iod/session.h"

namespace shima::iod {

// What the conversation asks of the daemon.
struct DaemonCalls {
  std::function<void(Client&, const std::string&)> introduce;
  std::function<std::string(const Client&)> status;
};

class Conversation {
 public:
  // What all conversations share.
  struct Shared {
    FairQueue& queue;
    CallTable& collective;
    Session::Shared sessions;
    const DaemonCalls& daemon;
  };
  Conversation(Client& client, const Shared& shared, std::chrono::milliseconds message_timeout);

  // Returns at the end of the connection.
  [[nodiscard]] Status hold();

 private:
  [[nodiscard]] bool has_left() const;
  [[nodiscard]] Status receive(remote::Request& request);
  [[nodiscard]] Status take_part();
  [[nodiscard]] Result<std::int64_t> skip();
  [[nodiscard]] Result<std::int64_t> execute(const remote::Request& request);
  [[nodiscard]] Result<std::int64_t> execute_in_turn(const remote::Request& request);
  [[nodiscard]] Status reply(const remote::Request& request, const Result<std::int64_t>& value);

  Client& client_;
  Shared shared_;
  FairQueue::Process process_;
  std::uint32_t received_ = 0;
  bool skips_next_ = false;  // a request that is linked to the next one has failed
  Inbox inbox_;
  Buffer data_;
  std::vector<std::byte> rest_;
  Session session_;
};

}  // namespace shima::iod
