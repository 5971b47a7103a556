// A subgroup master's work for agents on other nodes: it collects its subgroup's bytes of a window
// that an agent has granted and sends them in one message, or sends the runs that the subgroup
// wants and hands out what the agent replies.
//
// It reacts to grants only, so masters and agents cannot wait for each other in a circle. Nothing
// blocks but copying.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "collective/plan/subgroups.h"
#include "collective/window/near_bytes.h"
#include "collective/window/path_context.h"
#include "collective/window/walk.h"
#include "collective/window/window_message.h"
#include "group/messenger.h"

namespace shima {

class SubgroupMaster {
 public:
  // `agents`: the agents on other nodes that this member collects for.
  SubgroupMaster(PathContext& context, std::span<const NearPost> subgroup,
                 std::span<const int> agents);

  // Sends the requests.
  [[nodiscard]] Status start();
  [[nodiscard]] bool done() const { return done_; }
  // Whether all agents have begun to receive their requests.
  [[nodiscard]] bool has_asked() const { return requests_.empty(); }
  // Does what can be done now; returns whether there was anything.
  [[nodiscard]] Result<bool> step();
  // Of a read from I/O nodes, which do not know where the file ends.
  [[nodiscard]] FileOffset end_of_file() const { return end_of_file_; }

 private:
  struct Served;
  // A window that an agent has granted or, to read, replied to.
  struct Job {
    Served* served = nullptr;
    Window window;
    WindowId ahead;
    Coverage runs;
    std::vector<MemberWalk> members;  // a read
    Messenger::Ticket reply = 0;      // a read, once it has been asked for
    MessageBuffer bytes;              // of the reply, or those that have been collected to be sent
  };
  // The windows of an agent in which the subgroup has bytes, and the agent's grants.
  struct Served {
    int agent = 0;
    int rank = 0;
    std::vector<Domain> domains;
    DomainWalk walk;                 // bytes collected, or asked for
    DomainWalk ahead;                // windows announced
    std::deque<WindowId> announced;  // and not yet granted
    std::optional<Messenger::Ticket> grant;
    std::deque<Job> asked;  // reads: wait for replies
  };
  struct Side {
    std::unique_ptr<Job> job;  // whose bytes are in this window
    std::uint64_t serial = 0;
    std::optional<Messenger::Ticket> sending;  // from this window
  };
  static constexpr int side_count = 2;

  [[nodiscard]] WindowId announce_next(Served& served);
  [[nodiscard]] Status await_grant(Served& served);
  [[nodiscard]] Result<bool> take_grants();
  [[nodiscard]] Result<bool> take_replies();
  [[nodiscard]] Result<bool> advance(int index);
  [[nodiscard]] Result<Job> job_for(Served& served, const WindowId& id);
  [[nodiscard]] Status ask(Job job);
  [[nodiscard]] bool is_first(int index) const;
  [[nodiscard]] Status collect(int index);
  [[nodiscard]] Status hand_out(int index);
  [[nodiscard]] Result<TargetOffset> end_beyond(TargetOffset found, const Window& window,
                                                std::byte* image);
  [[nodiscard]] Status send_runs(const Job& job);
  // A write's message, as far as the bytes of the runs, for which it has room.
  [[nodiscard]] MessageBuffer message_for(const Job& job, std::size_t bytes,
                                          std::span<std::byte>& room);
  [[nodiscard]] Status send_bytes(Side& from, std::byte* image);
  [[nodiscard]] Result<bool> is_sent(Side& from);
  [[nodiscard]] Side& side(int index) { return sides_[static_cast<std::size_t>(index)]; }

  PathContext& context_;
  NearBytes near_;
  MessageMemory memory_;
  std::deque<Served> served_;
  std::deque<Job> granted_;  // writes: to collect; reads: replied
  int asked_ = 0;            // jobs that wait for replies
  std::array<Side, side_count> sides_;
  std::uint64_t begun_ = 0;                  // jobs
  std::vector<Messenger::Ticket> requests_;  // under way
  std::vector<Messenger::Ticket> sent_;
  std::optional<FileOffset> file_size_;  // once an I/O node's subfile has ended in a window
  FileOffset end_of_file_ = no_end_of_file;
  bool done_ = false;
};

}  // namespace shima
