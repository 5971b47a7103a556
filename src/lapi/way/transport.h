// A way to other tasks: a stream of bytes each way, and perhaps direct access to their memory.
//
// The engine above it has the one copy of every algorithm. A transport only moves bytes, says which
// tasks are there, and rings the bell of its own task when bytes arrive.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/direction.h"
#include "base/result.h"
#include "lapi/way/pieces.h"

namespace shima::lapi {

enum class Standing : std::uint32_t {
  absent,  // has not called LAPI_Init yet; messages wait for it
  running,
  left,  // has called LAPI_Term
  lost,  // has ended without, or cannot be reached
};

// How the memory of another task is accessible.
enum class Reach : std::uint8_t {
  none,     // by messages only
  copy,     // copy() moves bytes
  pointer,  // its addresses are valid here
};

class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  [[nodiscard]] virtual Standing standing(int task) = 0;
  // In how many meetings a task has taken part; of a running task perhaps fewer.
  [[nodiscard]] virtual std::uint64_t meetings(int task) = 0;
  // Treats a task as lost that has done what no task does; `what` ends the sentence in the log.
  virtual void give_up(int task, std::string_view what) = 0;
  // Receives nothing more from a task that is lost.
  virtual void stop_receiving(int) {}
  // Whether a last message shall tell the task that all has arrived: the end of the stream may not
  // reach it.
  [[nodiscard]] virtual bool wants_last(int) { return false; }
  // The last message of a task has arrived.
  virtual void note_last(int) {}
  // Sends as much as the stream takes at present; the caller's threads take turns. After a partial
  // one the own bell rings when there is room again.
  [[nodiscard]] virtual std::size_t push(int task, std::span<const iovec> pieces) = 0;
  [[nodiscard]] virtual bool has_room(int task) = 0;
  // Wakes the task after push().
  virtual void notify(int task) = 0;
  // Receives what has arrived; the caller's threads take turns.
  [[nodiscard]] virtual std::size_t pull(int task, std::span<const iovec> pieces) = 0;
  [[nodiscard]] virtual bool has_data(int task) = 0;

  [[nodiscard]] virtual Reach reach(int task) = 0;
  // Copies between memory of this process and of a task that is in reach.
  [[nodiscard]] virtual Status copy(int task, Direction direction, std::span<const Piece> here,
                                    std::span<const Piece> there) = 0;
  // Wakes threads of a task whose addresses are valid here, after a counter of it has grown.
  virtual void wake_waiters(int task) = 0;
};

}  // namespace shima::lapi
