// Waiting for MPI requests without spinning. MPI's own blocking calls occupy a whole core each;
// with more ranks than cores, another rank needs that core.
#pragma once

#include <mpi.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

#include "base/clock.h"
#include "base/result.h"

namespace shima {

// Backs off between polls: yields a few times, then sleeps. The sleeps of `growing` become longer;
// those of `prompt` stay short, so that the end is seen within 100 us. A rank with a core of its
// own yields for at least 100 us: a sleep and its wake may take longer than a message between
// nodes.
class Rest {
 public:
  enum class Pace { growing, prompt };
  explicit Rest(Pace pace = Pace::growing, bool has_core = false)
      : pace_(pace), has_core_(has_core) {}
  void rest();
  // How long the next rest is; 0: it only yields.
  [[nodiscard]] std::chrono::nanoseconds next();
  void reset() { yields_ = sleeps_ = 0; }

 private:
  [[nodiscard]] bool may_yield();

  Pace pace_;
  bool has_core_;
  int yields_ = 0;
  int sleeps_ = 0;
  Clock::time_point begin_;  // of the yields
};

// What a wait knows of the ranks: how it learns that one was lost (MPI does not tell that, or ends
// in an error of its own), and whether it has a core of its own.
struct Peers {
  Peers() = default;
  template <class Check>
  Peers(Check with, const std::atomic<std::uint32_t>* word = nullptr)
      : check(std::move(with)), lost(word) {}

  std::function<Status()> check;  // an error once a rank was lost; may be empty
  // If not null: not 0 as soon as `check` fails. A wait reads it at each poll, because an MPI that
  // goes on after a rank was lost may crash (MPICH 5.0, when it sends to that rank).
  const std::atomic<std::uint32_t>* lost = nullptr;
  bool has_core = false;
};

// Calls `peers.check` at intervals, and as soon as a rank is lost; for loops that wait.
class PeerWatch {
 public:
  explicit PeerWatch(const Peers& peers) : peers_(peers) {}
  [[nodiscard]] Status check();
  [[nodiscard]] Status check_now() const { return peers_.check ? peers_.check() : Status{}; }
  // An error of MPI: the loss of a rank, if that is the cause.
  [[nodiscard]] Status explain(Status failed) const;

 private:
  static constexpr std::chrono::milliseconds period{100};
  const Peers& peers_;
  Clock::time_point next_ = Clock::now() + period;
};

// Waits until `request` is complete. If `peers` finds a rank that was lost, the request, and the
// memory that it moves, stay in use for ever.
[[nodiscard]] Status await(MPI_Request& request, const char* doing, const Peers& peers = {});

// Waits until `request` has ended in any way, an error of the MPI too; an error only if a rank was
// lost.
[[nodiscard]] Status await_end(MPI_Request& request, const Peers& peers);

// An MPI return code as a Status.
[[nodiscard]] Status checked(int mpi_code, const char* doing) noexcept;

}  // namespace shima
