// The messages between subgroup masters and agents.
//
// A subgroup announces to an agent, in order, the windows in which it has bytes; always two windows
// ahead, so that an agent can open two. The agent grants a window when it has memory for the
// message. The message of a window describes itself: it has the runs of bytes, as a list or as one
// bit for each granule, whichever is shorter, and then (writes) the bytes of all runs in file
// order. So an agent needs to know neither the members of other nodes nor their patterns. For a
// read, the agent replies with the bytes of the runs. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/result.h"
#include "collective/window/coverage.h"
#include "collective/window/walk.h"

namespace shima {

// One of an agent's windows; windows are in the order of their numbers, then of their domains.
struct WindowId {
  std::int64_t number = -1;  // of the window in the subfile's grid; -1: no window
  std::int32_t domain = 0;   // index among the agent's
  std::int32_t reserved = 0;

  [[nodiscard]] bool none() const { return number < 0; }
  friend bool operator==(const WindowId&, const WindowId&) = default;
  friend auto operator<=>(const WindowId&, const WindowId&) = default;
};

[[nodiscard]] WindowId id_of(const Window& window, std::uint64_t window_bytes);
// Refuses windows that the domains do not have.
[[nodiscard]] Result<Window> window_of(const WindowId& id, std::span<const Domain> domains,
                                       std::uint64_t window_bytes);

// From a subgroup to an agent, first: the subgroup's first two windows.
struct WindowRequest {
  WindowId first;
  WindowId second;
};

// From an agent to a subgroup.
struct WindowGrant {
  WindowId window;
};

// Begins a window's message.
struct WindowHead {
  WindowId window;
  WindowId ahead;  // the second window after this one
};

// Begins a reply; the bytes of the runs below `end` follow.
struct ReplyHead {
  WindowId window;
  std::int64_t end = 0;          // target offset where the subfile ends, or the window
  std::int64_t end_of_file = 0;  // of the logical file; the largest offset if it was not reached
};

// Reads a T from the beginning of `in`, and removes it.
template <class T>
[[nodiscard]] Result<T> take_from(std::span<const std::byte>& in) {
  T value;
  if (in.size() < sizeof value) return fail(Code::internal, "a message of another node: too short");
  std::memcpy(&value, in.data(), sizeof value);
  in = in.subspan(sizeof value);
  return value;
}

// Writes a T to the beginning of `out`, and removes its place.
template <class T>
void put_into(std::span<std::byte>& out, const T& value) {
  std::memcpy(out.data(), &value, sizeof value);
  out = out.subspan(sizeof value);
}

// The number of bytes that put_runs() writes, and the most for any runs of a window.
[[nodiscard]] std::size_t runs_bytes(const Coverage& runs);
[[nodiscard]] std::size_t most_runs_bytes(std::uint64_t window_bytes, std::uint64_t granule_bytes);
void put_runs(std::span<std::byte>& out, const Coverage& runs);
// Marks the runs in `runs`, which has no marks; refuses runs outside its window.
[[nodiscard]] Status take_runs(std::span<const std::byte>& in, Coverage& runs);

// A run, and where its bytes are in a message.
struct RunBytes {
  TargetRange range;
  const std::byte* data = nullptr;
};

// Runs of this size are moved from where they are, if possible: to copy them would cost more than
// the work for each.
inline constexpr std::uint64_t large_run_bytes = 4096;
// Whether they have this size on average.
[[nodiscard]] bool has_large_runs(const Coverage& runs);

// Where the bytes of the runs are in `data`, which has them one after the other. Refuses data of
// another length.
[[nodiscard]] Result<std::vector<RunBytes>> runs_in(const Coverage& runs,
                                                    std::span<const std::byte> data);

// Copies the bytes of the runs between a window's image and `data`, which has them one after the
// other; only those below `end`. Returns how many there were.
std::size_t pack_runs(const Coverage& runs, TargetOffset end, const std::byte* image,
                      std::span<std::byte> data);
// Refuses data of another length.
[[nodiscard]] Status unpack_runs(const Coverage& runs, TargetOffset end,
                                 std::span<const std::byte> data, std::byte* image);

}  // namespace shima
