// An agent's work: it takes its domains through two windows, which it uses in turn.
//
// A write collects the bytes of members near it and of guests, then writes the window; large pieces
// of guests stay in their messages and are written from there. A read collects the runs that guests
// want, reads the window, then hands the bytes out; large pieces for guests alone are sent from the
// page cache, if they are there. If the agent has guests, a thread writes and reads large windows,
// one after the other in their order, while the agent exchanges the messages of the next. No step
// blocks but for copying, and for the disk without that thread.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "collective/guest_pieces.h"
#include "collective/window/near_bytes.h"
#include "collective/window/path_context.h"
#include "collective/window/walk.h"
#include "collective/window/window_io.h"
#include "store/subfile/directed_call.h"

namespace shima {

class AgentServer {
 public:
  // `requests`: see Guests.
  AgentServer(PathContext& context, int agent, std::vector<Domain> domains,
              std::optional<int> requests);
  AgentServer(const AgentServer&) = delete;
  AgentServer& operator=(const AgentServer&) = delete;
  // Waits for the disk, which uses the windows.
  ~AgentServer();

  [[nodiscard]] Status start() { return near_.start(); }
  [[nodiscard]] bool done() const { return done_; }
  // Whether it may wait for messages.
  [[nodiscard]] bool may_have_guests() const { return !guests_.none(); }
  // Does what can be done now; returns whether there was anything.
  [[nodiscard]] Result<bool> step();
  // Waits for the disk after the last step, and returns its error.
  [[nodiscard]] Status stop() { return context_.disk.wait(); }
  [[nodiscard]] FileOffset end_of_file() const { return end_of_file_; }

  // The memory that the agent on an I/O node uses at most for a call, apart from some hundred bytes
  // for each guest; and the part of it for copies in replies under way.
  [[nodiscard]] static std::uint64_t most_memory_bytes(const DirectedCall& call);
  [[nodiscard]] static std::uint64_t most_copies_bytes(const DirectedCall& call);

 private:
  enum class State : std::uint8_t {
    idle,
    collecting,   // waits for guests and, to write, for near members
    moving,       // the disk writes or reads; one side at a time
    handing_out,  // a read: near members copy, replies are sent
  };
  struct Side {
    explicit Side(const PathContext& context) : io(context) {}
    State state = State::idle;
    std::uint64_t serial = 0;
    WindowIo io;
    Window window;
    bool has_image = false;                  // a write: some bytes are in the window's image
    GuestPieces pieces;                      // a write: the others
    TargetOffset end;                        // a read: of what was found
    std::vector<MemberWalk> near;            // a read: where the near members are
    std::deque<GuestMessage> to_answer;      // a read
    std::unique_ptr<FileView> view;          // a read: sent from here instead of the image
    ReplyHead head;                          // a read: of the replies
    std::vector<Messenger::Ticket> sending;  // a read: replies
    std::uint64_t copied_bytes = 0;          // for those, since there were none
  };
  static constexpr int side_count = 2;

  [[nodiscard]] Result<bool> take_messages();
  [[nodiscard]] Status take_bytes(int index, GuestMessage message);
  [[nodiscard]] Status write(int index);
  [[nodiscard]] Status read(int index);
  [[nodiscard]] bool may_send_from_file(const Side& at) const;
  [[nodiscard]] Result<bool> advance(int index);
  [[nodiscard]] bool can_move(int index);
  [[nodiscard]] Result<bool> open_next(int index);
  [[nodiscard]] WindowId next_window() const;
  void start_disk(int index);
  [[nodiscard]] Status complete(int index);
  [[nodiscard]] Status answer(int index);
  [[nodiscard]] Result<bool> send_replies(int index);
  [[nodiscard]] Side& side(int index) { return sides_[static_cast<std::size_t>(index)]; }

  PathContext& context_;
  Counters disk_counters_;    // of the disk's thread
  PathContext disk_context_;  // the same, but for these counters
  int agent_;
  std::vector<Domain> domains_;
  NearBytes near_;
  Guests guests_;
  DomainWalk walk_;
  std::array<Side, side_count> sides_;
  std::uint64_t opened_ = 0;
  bool exhausted_ = false;
  bool done_ = false;
  FileOffset end_of_file_ = no_end_of_file;
};

}  // namespace shima
