// A file that the members of a channel have opened together.
#pragma once

#include <tuple>

#include "collective/plan/plan.h"
#include "collective/run.h"
#include "device/staged_memory.h"
#include "file/file.h"
#include "file/own_access.h"
#include "group/agreement.h"
#include "group/caches.h"
#include "group/node/shared_windows.h"
#include "group/pointer/shared_pointer.h"
#include "observe/board.h"
#include "observe/shared_counters.h"
#include "observe/trace_log.h"
#include "store/striped/logical_file.h"

namespace shima {

class JointFile final : public File {
 public:
  struct Facts {
    bool wants_stats = false;
    Caches caches = Caches::one;
    bool cores_to_spare = false;  // opened by one process that may use several cores
  };
  // `facts` must be the same on all members.
  JointFile(Channel& channel, LogicalFile file, OpenRequest request, Facts facts);
  JointFile(const JointFile&) = delete;
  JointFile& operator=(const JointFile&) = delete;
  ~JointFile() override {
    std::ignore = caught([this] { return own_.flush(); });
  }
  // Takes ownership of the channel, after all members have constructed the file.
  void own(std::unique_ptr<Channel> channel) { owner_ = std::move(channel); }
  // Takes the file's place on the board.
  void show_as(BoardFile shown) { shown_ = std::move(shown); }

  Result<std::uint64_t> write(const Transfer& transfer) override;
  Result<std::uint64_t> read(const Transfer& transfer) override;
  bool moves_contiguous() const override { return own_.moves_at_once(); }
  Result<std::uint64_t> move_contiguous(const ContiguousPiece& piece,
                                        const CallPlace& place) override;
  bool moves_at_once(Direction direction, const Transfer& transfer) override;
  Result<std::uint64_t> write_all(const Result<Transfer>& transfer) override {
    return move_all(Direction::write, transfer);
  }
  Result<std::uint64_t> read_all(const Result<Transfer>& transfer) override {
    return move_all(Direction::read, transfer);
  }

  Result<FileOffset> size() override { return own_.size(); }

  Status set_size(const Result<FileOffset>& size) override;
  Status preallocate(const Result<FileOffset>& size) override;
  Result<std::int64_t> claim_in_order(const Result<std::uint64_t>& len) override;
  SharedPointer* shared_pointer() override { return channel_->shared_pointer(); }
  bool on_one_node() const override { return channel_->messenger() == nullptr; }
  Status first_member_does(const char* doing,
                           const Result<std::pair<std::int64_t, std::int64_t>>& same,
                           FunctionRef<Status()> action) override;
  Status set_atomicity(bool atomic) override;
  bool atomicity() const override { return atomic_; }
  Status sync() override;
  Status close() override;

  const AccessMode& mode() const override { return request_.mode; }
  std::span<const StripedRegion> striping() const override {
    if (file_.master() == nullptr) return {};
    return file_.master()->regions;
  }
  const Hints& hints() const override { return request_.hints; }
  Hints hints_in_effect() const override;
  Status set_hints(const Result<Hints>& hints, std::uint64_t same) override;
  Counters& counters() override { return counters_.sum(); }
  std::uint16_t trace_number() const override { return trace_file_; }

 private:
  void tune();
  [[nodiscard]] const Tuning& tuning_for(Direction direction) const {
    return direction == Direction::write ? write_tuning_ : read_tuning_;
  }
  Result<std::uint64_t> move(Direction direction, const Transfer& transfer);
  Result<MemberAccess> access_of(Direction direction, const Result<Transfer>& transfer,
                                 std::uint64_t more_rounds);
  Result<std::uint64_t> move_all(Direction direction, const Result<Transfer>& transfer);
  Result<std::uint64_t> move_together(Direction direction, const Result<Transfer>& transfer,
                                      Counters& counters);
  // Part of its callers: see own_access.cpp.
  [[gnu::always_inline]] void note_moved(Counted kind, Direction direction, std::uint64_t bytes) {
    count(kind, bytes);
    shown_.moved(direction, bytes);
  }
  void trace(const Traced& traced, const ContiguousPiece& piece, const CallPlace& place,
             const Result<std::uint64_t>& moved);
  void trace(const Traced& traced, Direction direction, const Transfer* transfer,
             const Counters& counters, const Result<std::uint64_t>& moved);
  // Writes what is pending on each member (pending_writes.h); collective.
  Status flush_together();
  // All members. With several nodes, a member knows only its own.
  [[nodiscard]] bool in_one_space() const { return channel_->one_space() && on_one_node(); }
  [[nodiscard]] bool is_small_write_here(Direction direction, const Slice& file) const;
  [[nodiscard]] bool leaves_write(Direction direction, const Slice& file) const;
  [[nodiscard]] bool needs_no_plan(Direction direction, const Slice& file) const;
  // What a member has done before the first meeting of a call.
  struct MovedBefore {
    const Result<std::uint64_t>& len_bytes;
    std::span<const std::byte> left;  // its small write, if it leaves one
    std::uint64_t more_rounds = 0;
  };
  Result<CollectiveResult> bring_nothing(Direction direction, const Transfer& piece,
                                         const MovedBefore& moved, Counters& counters);
  [[nodiscard]] CollectiveCall call_of(Direction direction, Counters& counters);
  Result<CollectiveResult> move_round(Direction direction, const Result<Transfer>& piece,
                                      std::uint64_t more_rounds, Counters& counters);
  Status resize(const char* doing, const Result<FileOffset>& size, FunctionRef<Status()> action);
  void complete(Digest& digest, std::uint64_t more_rounds) const;
  [[nodiscard]] bool seems_cached(const Bounds& bounds);
  Status report();

  std::unique_ptr<Channel> owner_;
  Channel* channel_;
  LogicalFile file_;
  std::uint64_t io_nodes_;  // see LogicalFile::node_identity
  OpenRequest request_;
  std::string removable_;  // path to remove at close
  Caches caches_;
  SharedCounters counters_;
  BoardFile shown_;
  std::uint16_t trace_file_ = 0;  // its number in the trace
  QueuePool device_queues_;
  OwnAccess own_;
  KnownPosts posts_;
  std::vector<std::byte> left_;  // this member's small write (collective/small_write.h)
  History history_;              // of the collective calls
  std::uint64_t last_ns_ = 0;    // the duration of the last one here
  Tuning write_tuning_;
  Tuning read_tuning_;
  bool atomic_ = false;
  // Of collective transfers over several nodes. Uses the channel.
  Aside disk_{[this] {
    if (const SharedWindows* const windows = channel_->windows()) windows->use_all_cores();
  }};
};

}  // namespace shima
