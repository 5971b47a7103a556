// A file that the members of a channel have opened together.
#pragma once

#include <mutex>
#include <tuple>

#include "collective/plan.h"
#include "collective/run.h"
#include "device/staged_memory.h"
#include "file/exchange_hints.h"
#include "file/file.h"
#include "file/pending_writes.h"
#include "group/agreement.h"
#include "group/pointer/shared_pointer.h"
#include "independent/independent.h"
#include "independent/read_ahead.h"
#include "store/striped/logical_file.h"

namespace shima {

class JointFile final : public File {
 public:
  struct Facts {
    bool wants_stats = false;
    bool caches_apart = false;    // members do not see at once what others write
    bool cores_to_spare = false;  // opened by one process that may use several
  };
  // `facts` are the same on all members.
  JointFile(Channel& channel, LogicalFile file, OpenRequest request, Facts facts);
  JointFile(const JointFile&) = delete;
  JointFile& operator=(const JointFile&) = delete;
  ~JointFile() override {
    std::ignore = caught([this] { return flush_alone(); });
  }
  // Takes the channel over, once all members have made the file.
  void own(std::unique_ptr<Channel> channel) { owner_ = std::move(channel); }

  Result<std::uint64_t> write(const Transfer& transfer) override {
    return move(Direction::write, transfer);
  }
  Result<std::uint64_t> read(const Transfer& transfer) override {
    return move(Direction::read, transfer);
  }
  Result<std::uint64_t> write_all(const Result<Transfer>& transfer) override {
    return move_all(Direction::write, transfer);
  }
  Result<std::uint64_t> read_all(const Result<Transfer>& transfer) override {
    return move_all(Direction::read, transfer);
  }

  Result<FileOffset> size() override;

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
  Status agree(const Status& mine) override {
    return agree_on(*channel_, mine, "opening", request_.path);
  }
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
  Counters& counters() override { return counters_; }

 private:
  void tune();
  [[nodiscard]] const Tuning& tuning_for(Direction direction) const {
    return direction == Direction::write ? write_tuning_ : read_tuning_;
  }
  Result<std::uint64_t> move(Direction direction, const Transfer& transfer);
  Result<std::uint64_t> move_own(Direction direction, const Transfer& transfer, Counters& counters);
  Result<std::uint64_t> move_pieces(Direction direction, const Transfer& transfer,
                                    Counters& counters);
  Result<bool> combine(const Transfer& transfer, Counters& counters);
  [[nodiscard]] IndependentOptions own_options();
  Result<std::uint64_t> read_own(const Transfer& transfer, Counters& counters);
  Result<Post> post_of(Direction direction, const Result<Transfer>& transfer,
                       std::uint64_t more_rounds);
  Result<std::uint64_t> move_all(Direction direction, const Result<Transfer>& transfer);
  Result<std::uint64_t> move_together(Direction direction, const Result<Transfer>& transfer);
  // Writes that wait (pending_writes.h): adds one if it may wait, and writes them, alone or
  // together with all members (collective).
  Result<bool> keep(const Transfer& transfer);
  Status flush_alone();
  Status flush_together();
  Result<CollectiveResult> move_round(Direction direction, const Result<Transfer>& piece,
                                      std::uint64_t more_rounds, Counters& counters);
  Status resize(const char* doing, const Result<FileOffset>& size, FunctionRef<Status()> action);
  [[nodiscard]] bool seems_cached(const Bounds& bounds);
  void count(const Counters& counters) {
    if (!facts_.wants_stats) return;
    const std::lock_guard lock(counters_mutex_);
    counters_.add(counters);
  }
  Status report();

  std::unique_ptr<Channel> owner_;
  Channel* channel_;
  LogicalFile file_;
  OpenRequest request_;
  std::string removable_;  // what to remove when it is closed
  Facts facts_;
  ReadAhead read_ahead_;
  QueuePool device_queues_;
  Tuning write_tuning_;
  Tuning read_tuning_;
  std::mutex combining_;
  std::mutex pending_mutex_;
  PendingWrites pending_;
  bool atomic_ = false;
  std::mutex alone_;  // in atomic mode: the file's locks do not keep threads of one process apart
  std::mutex counters_mutex_;
  Counters counters_;
};

}  // namespace shima
