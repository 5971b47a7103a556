// A distributed shared memory as one task sees it: checks, and the direct way.
//
// An access is checked against the sizes and protection tables of all tasks before anything moves.
// The table of a task on this host is read where its owner stores it. Of a task on another host
// there is a copy, which the owner updates before a change returns. Data in mapped segments is
// copied directly; the rest goes a Way.
//
// Of the orders of two direct copies by a thread, only a READ after a WRITE is left open: it would
// cost each READ a full fence. A complete WRITE has one.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/result.h"
#include "dsm/copy.h"
#include "dsm/protection.h"
#include "dsm/ranges.h"
#include "dsm/segment.h"
#include "dsm/way.h"

namespace shima::dsm {

class Memory {
 public:
  struct Options {
    int task = 0;
    bool direct = true;  // within the host
    bool apart = false;  // tests: no task maps another's segment, as if each had its own host
  };

  // `refs` are those of all tasks, in order.
  Memory(Segment own, std::span<const SegmentRef> refs, Options options);
  // The error, if there was no room for a copy of another task's table. Then it serves no call.
  [[nodiscard]] const Status& prepared() const { return prepared_; }

  [[nodiscard]] int task() const { return options_.task; }
  [[nodiscard]] int tasks() const { return static_cast<int>(peers_.size()); }
  [[nodiscard]] const SegmentView& own() const { return own_.view(); }
  // Whether a task is on this host.
  [[nodiscard]] bool is_near(int task) const {
    return task == options_.task || !peer(task).mapping.bytes().empty();
  }
  // Whether accesses to a task's memory are plain copies.
  [[nodiscard]] bool is_direct(int task) const { return peer(task).direct != nullptr; }
  // Before the first access.
  void set_way(std::unique_ptr<Way> way) { way_ = std::move(way); }
  // Tells the tasks to which this one is not near of a change; empty if it is near to all.
  using Tell = std::function<Status(Granules, Protection)>;
  void set_tell(Tell tell) { tell_ = std::move(tell); }

  // These make a permitted access to memory that is mapped; false if it is another one, for which
  // read() and write() are.
  [[nodiscard, gnu::always_inline]] bool read_directly(int task, std::uint64_t offset,
                                                       std::span<std::byte> into) const {
    if (find_fault(task, offset, into.size(), Access::read) != Fault::none) [[unlikely]]
      return false;
    const std::byte* const direct = peer(task).direct;
    if (direct == nullptr) return false;
    copy_inline(into.data(), direct + offset, into.size());
    std::atomic_thread_fence(std::memory_order_acquire);
    return true;
  }
  [[nodiscard, gnu::always_inline]] bool write_directly(int task, std::uint64_t offset,
                                                        std::span<const std::byte> data,
                                                        bool complete) const {
    if (find_fault(task, offset, data.size(), Access::write) != Fault::none) [[unlikely]]
      return false;
    std::byte* const direct = peer(task).direct;
    if (direct == nullptr) return false;
    std::atomic_thread_fence(std::memory_order_release);
    copy_inline(direct + offset, data.data(), data.size());
    if (complete) std::atomic_thread_fence(std::memory_order_seq_cst);
    return true;
  }
  [[nodiscard]] Status read(int task, std::uint64_t offset, std::span<std::byte> into);
  [[nodiscard]] Status write(int task, std::uint64_t offset, std::span<const std::byte> data,
                             bool complete);
  [[nodiscard]] Result<std::uint64_t> rmw(int task, std::uint64_t offset, const Rmw& request);
  [[nodiscard]] Status fence();
  [[nodiscard]] std::uint64_t lost_bytes() { return way_ ? way_->lost_bytes() : 0; }
  [[nodiscard]] Result<std::uint64_t> size_of(int task) const;

  // The owner's calls.
  [[nodiscard]] Result<std::uint64_t> allocate(std::uint64_t size_bytes, Protection protection);
  [[nodiscard]] Status release(std::uint64_t offset);
  [[nodiscard]] Status protect(std::uint64_t offset, std::uint64_t len_bytes,
                               Protection protection);

  // Another task has changed its protection; false if it is none that the task could send.
  [[nodiscard]] bool note_change(int task, Granules range, Protection protection);
  // Another task has ended, or cannot be reached.
  void note_loss(int task) { peer(task).lost.store(true, std::memory_order_seq_cst); }
  // This task leaves; the others' calls that need it fail from now.
  void show_left() { own().head().has_left.store(1, std::memory_order_seq_cst); }

 private:
  enum class Fault : std::uint8_t { none, task, range, violation, gone };

  struct Peer {
    std::uint64_t size_bytes = 0;
    std::byte* direct = nullptr;
    ProtectionTable table;
    const std::atomic<std::uint32_t>* has_left = nullptr;
    std::atomic<bool> lost{false};
    Mapping mapping;
    Mapping copy_of_table;
    std::atomic<std::uint32_t> never{0};
  };

  [[nodiscard]] Peer& peer(int task) { return peers_[static_cast<std::size_t>(task)]; }
  [[nodiscard]] const Peer& peer(int task) const { return peers_[static_cast<std::size_t>(task)]; }
  [[nodiscard]] Status take_in(int task, const SegmentRef& ref);
  [[nodiscard, gnu::always_inline]] Fault find_fault(int task, std::uint64_t offset,
                                                     std::uint64_t len_bytes, Access access) const {
    if (static_cast<std::size_t>(task) >= peers_.size()) return Fault::task;
    const Peer& it = peer(task);
    if (offset > it.size_bytes || len_bytes > it.size_bytes - offset) return Fault::range;
    if (!it.table.allows(offset, len_bytes, access)) return Fault::violation;
    if (it.lost.load(std::memory_order_relaxed) ||
        it.has_left->load(std::memory_order_relaxed) != 0)
      return Fault::gone;
    return Fault::none;
  }
  [[nodiscard]] std::unexpected<Error> refuse(Fault fault, int task, std::uint64_t offset,
                                              std::uint64_t len_bytes, Access access) const;
  [[nodiscard]] Status change(Granules range, Protection protection);

  Options options_;
  Status prepared_;
  Segment own_;
  std::vector<Peer> peers_;
  std::unique_ptr<Way> way_;
  Tell tell_;
  std::mutex owner_;         // held by calls that allocate or protect
  bool has_untold_ = false;  // another task's copy may differ from the table
  Ranges ranges_;
};

}  // namespace shima::dsm
