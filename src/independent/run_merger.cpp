#include "independent/run_merger.h"

#include <limits.h>

#include <algorithm>
#include <chrono>

namespace shima {
namespace {

constexpr std::size_t most_pieces = IOV_MAX;
constexpr std::size_t most_batch_runs = 64;
constexpr std::uint64_t most_run_bytes = std::uint64_t{4} << 20;
constexpr std::chrono::milliseconds quick{2};

}  // namespace

struct RunMerger::Waiter {
  std::span<MergeRun> runs;
  std::size_t next = 0;         // index of the run to take next
  std::size_t passed_over = 0;  // batches since its last run was taken
  bool is_done = false;
  Status outcome = {};
  std::condition_variable changed = {};

  [[nodiscard]] bool has_runs() const { return next < runs.size(); }
  [[nodiscard]] TargetOffset begin() const { return runs[next].range.begin; }
};

RunMerger::RunMerger(Direction direction) : direction_(direction) {
  taken_.reserve(most_pieces);
  pieces_.reserve(most_pieces);
  runs_.reserve(most_batch_runs);
}

bool RunMerger::are_in_order(std::span<const MergeRun> runs) {
  const auto out_of_order = [](const MergeRun& a, const MergeRun& b) {
    return a.range.end > b.range.begin;
  };
  return std::ranges::none_of(runs, [](const MergeRun& run) { return run.range.empty(); }) &&
         std::ranges::adjacent_find(runs, out_of_order) == runs.end();
}

Status RunMerger::move(Subfile& file, std::span<MergeRun> runs) {
  if (runs.empty()) return {};
  Waiter own{.runs = runs};
  std::unique_lock hold(mutex_);
  waiting_.push_back(&own);
  if (expected_ > 0) --expected_;
  if (expected_ == 0) all_came_.notify_one();
  own.changed.wait(hold, [&] { return own.is_done || !is_led_; });
  if (!own.is_done) lead(own, file, hold);
  return own.outcome;
}

// Until the leader's own runs are moved; then one of those that wait leads.
void RunMerger::lead(Waiter& own, Subfile& file, std::unique_lock<std::mutex>& hold) {
  is_led_ = true;
  while (!own.is_done) {
    await_those_let_off(hold);
    take_batch();
    hold.unlock();
    move_batch(file);
    hold.lock();
    let_off();
  }
  is_led_ = false;
  if (!waiting_.empty()) waiting_.front()->changed.notify_one();
}

void RunMerger::await_those_let_off(std::unique_lock<std::mutex>& hold) {
  constexpr int small_part = 8;
  constexpr Clock::duration longest = std::chrono::milliseconds(50);
  if (took_ >= quick)
    all_came_.wait_for(hold, std::min(took_ / small_part, longest),
                       [this] { return expected_ == 0; });
  expected_ = 0;
}

void RunMerger::take_batch() {
  taken_.clear();
  pieces_.clear();
  runs_.clear();
  for (Waiter* const waiter : waiting_) ++waiter->passed_over;
  while (runs_.size() < batch_runs_ && pieces_.size() < most_pieces) {
    Waiter* waiter = first_waiter();
    if (waiter == nullptr) return;
    take_run(*waiter, false);
    while (pieces_.size() < most_pieces && runs_.back().len_bytes < most_run_bytes) {
      waiter = waiter_at(runs_.back().begin + as_signed(runs_.back().len_bytes));
      if (waiter == nullptr) break;
      take_run(*waiter, true);
    }
  }
}

// Whose next run has the lowest offset; or one that was passed over too often for its share.
RunMerger::Waiter* RunMerger::first_waiter() const {
  const std::size_t too_often = 4 * waiting_.size();
  Waiter* first = nullptr;
  for (Waiter* const waiter : waiting_) {
    if (!waiter->has_runs()) continue;
    if (waiter->passed_over > too_often) return waiter;
    if (first == nullptr || waiter->begin() < first->begin()) first = waiter;
  }
  return first;
}

RunMerger::Waiter* RunMerger::waiter_at(TargetOffset offset) const {
  const auto found = std::ranges::find_if(waiting_, [offset](const Waiter* waiter) {
    return waiter->has_runs() && waiter->begin() == offset;
  });
  return found == waiting_.end() ? nullptr : *found;
}

void RunMerger::take_run(Waiter& waiter, bool follows) {
  MergeRun& run = waiter.runs[waiter.next++];
  waiter.passed_over = 0;
  taken_.push_back({&waiter, &run});
  pieces_.push_back({run.data, run.range.len_bytes()});
  if (follows) {
    ApartRun& last = runs_.back();
    last.pieces = {last.pieces.data(), last.pieces.size() + 1};
    last.len_bytes += run.range.len_bytes();
  } else {
    runs_.push_back({run.range.begin, {&pieces_.back(), 1}, run.range.len_bytes()});
  }
}

// Reads go to the system together; a write through a ring takes longer than by itself.
void RunMerger::move_batch(Subfile& file) {
  const auto begin = Clock::now();
  const auto together = [&]() -> Result<bool> {
    return direction_ == Direction::read && runs_.size() > 1 && file.move_apart(runs_, false);
  };
  const auto moved = caught(together);
  if (moved && *moved)
    for (const Taken& taken : taken_) taken.run->moved_bytes = taken.run->range.len_bytes();
  else
    move_one_by_one(file);
  took_ = Clock::now() - begin;
  batch_runs_ = took_ < quick ? std::min(batch_runs_ * 2, most_batch_runs)
                              : std::max<std::size_t>(batch_runs_ / 2, 1);
}

// After an error each piece is moved alone, so that only those whose piece fails are told.
void RunMerger::move_one_by_one(Subfile& file) {
  std::size_t first = 0;
  for (const ApartRun& run : runs_) {
    const std::size_t count = run.pieces.size();
    const bool well = move_pieces(file, first, count).has_value();
    for (std::size_t i = first; i < first + count && !well; ++i) {
      const Status alone = move_pieces(file, i, 1);
      Status& outcome = taken_[i].waiter->outcome;
      if (!alone && outcome) outcome = alone;
    }
    first += count;
  }
}

Status RunMerger::move_pieces(Subfile& file, std::size_t first, std::size_t count) {
  const std::span<const iovec> pieces = std::span(pieces_).subspan(first, count);
  const TargetOffset begin = taken_[first].run->range.begin;
  std::uint64_t moved = 0;
  const Status status = caught([&]() -> Status {
    if (direction_ == Direction::write) return file.write(begin, pieces);
    SHIMA_TRY_ASSIGN(moved, file.read(begin, pieces));
    return {};
  });
  if (!status) return status;
  for (const Taken& taken : std::span(taken_).subspan(first, count)) {
    const std::uint64_t wanted = taken.run->range.len_bytes();
    taken.run->moved_bytes = direction_ == Direction::write ? wanted : std::min(moved, wanted);
    moved -= std::min(moved, wanted);
  }
  return {};
}

void RunMerger::let_off() {
  expected_ = std::erase_if(waiting_, [](Waiter* waiter) {
    if (waiter->has_runs()) return false;
    waiter->is_done = true;
    waiter->changed.notify_one();
    return true;
  });
}

std::shared_ptr<RunMerger> RunMergers::of(const FileIdentity& identity, Direction direction,
                                          bool is_direct) {
  const std::lock_guard hold(mutex_);
  std::erase_if(mergers_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<RunMerger>& known =
      mergers_[{identity.device, identity.inode, direction, is_direct}];
  std::shared_ptr<RunMerger> merger = known.lock();
  if (!merger) known = merger = std::make_shared<RunMerger>(direction);
  return merger;
}

}  // namespace shima
