// Merges the runs that several clients of one subfile want at about the same time.
//
// The runs of different clients often interleave, and each alone would be a request of the disk.
// Here one of the waiting threads leads: it takes the run at the lowest offset, and with it all
// that follows in the subfile without a gap, of any client, and moves this in one call. So
// those that are behind catch up, and then all advance together; a run that was passed over often
// is taken first. As long as calls are quick, several go to the system together; a slow disk gets
// one at a time, so that those who arrive meanwhile are met soon. After a slow call, those whose
// requests it has completed get a little time to come with the next one. Otherwise no thread waits
// for a request that has not arrived.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "base/direction.h"
#include "base/result.h"
#include "store/subfile/subfile.h"

namespace shima {

struct MergeRun {
  TargetRange range;
  std::byte* data = nullptr;
  std::uint64_t moved_bytes = 0;  // afterwards; less than the range at the end of the file
};

class RunMerger {
 public:
  explicit RunMerger(Direction direction);
  RunMerger(const RunMerger&) = delete;
  RunMerger& operator=(const RunMerger&) = delete;

  // Moves the runs, which are in order and do not overlap. `file` may move other requests' runs in
  // this call, and is used by no other thread. Blocks.
  [[nodiscard]] Status move(Subfile& file, std::span<MergeRun> runs);
  // Whether runs are in order and do not overlap.
  [[nodiscard]] static bool are_in_order(std::span<const MergeRun> runs);

 private:
  struct Waiter;
  struct Taken {
    Waiter* waiter;
    MergeRun* run;
  };

  void lead(Waiter& own, Subfile& file, std::unique_lock<std::mutex>& hold);
  void await_those_let_off(std::unique_lock<std::mutex>& hold);
  void take_batch();
  [[nodiscard]] Waiter* first_waiter() const;
  [[nodiscard]] Waiter* waiter_at(TargetOffset offset) const;
  void take_run(Waiter& waiter, bool follows);
  void move_batch(Subfile& file);
  void move_one_by_one(Subfile& file);
  [[nodiscard]] Status move_pieces(Subfile& file, std::size_t first, std::size_t count);
  void let_off();

  const Direction direction_;
  std::mutex mutex_;
  bool is_led_ = false;
  std::vector<Waiter*> waiting_;
  std::size_t batch_runs_ = 1;
  Clock::duration took_{};    // the last batch
  std::size_t expected_ = 0;  // how many requests it has completed, less those that came since
  std::condition_variable all_came_;
  // Of the batch under way. They have the room that they may need, so that nothing fails once runs
  // have been taken.
  std::vector<Taken> taken_;
  std::vector<iovec> pieces_;   // one for each taken run
  std::vector<ApartRun> runs_;  // over consecutive pieces
};

// The mergers of all open subfiles. All sessions that use one hold it.
class RunMergers {
 public:
  // `is_direct`: whether the subfile is open for direct transfers in this direction.
  [[nodiscard]] std::shared_ptr<RunMerger> of(const FileIdentity& identity, Direction direction,
                                              bool is_direct);

 private:
  using Key = std::tuple<std::uint64_t, std::uint64_t, Direction, bool>;
  std::mutex mutex_;
  std::map<Key, std::weak_ptr<RunMerger>> mergers_;
};

}  // namespace shima
