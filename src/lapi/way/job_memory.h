// The memory that the tasks of a node share: their mailboxes, and a ring for each ordered pair.
//
// `shima run --lapi` creates it as a file without a name (memfd) before it starts the tasks, which
// inherit the descriptor: who has it, belongs to the job, and no secret is needed. It has a region
// for each context. Pages that are never touched cost nothing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/process/process_handle.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "ipc/one_space.h"
#include "ipc/shared_buffer.h"
#include "lapi/way/bell.h"
#include "lapi/way/byte_ring.h"
#include "lapi/way/transport.h"

namespace shima::lapi {

inline constexpr int most_tasks = 1024;     // on a node
inline constexpr int contexts_of_job = 16;  // how often a task may call LAPI_Init

// What a task shows to the others of its node.
struct alignas(64) Mailbox {
  std::atomic<std::uint32_t> standing{0};  // absent, running, left
  ProcessIdentity process;                 // these are set before `standing`
  SpacePlace place;
  std::atomic<std::uint64_t> meetings{0};
  std::uint64_t nonce = 0;
  std::uint64_t nonce_address = 0;     // where the task has the nonce
  std::atomic<std::uint32_t> core{0};  // 1 + that of the thread which polled last
  alignas(64) Bell bell;               // changes more often
};

// A region of one context.
class JobMemory {
 public:
  [[nodiscard]] static std::size_t region_bytes(int tasks);
  // Over zeroed memory of region_bytes() that outlives it.
  JobMemory(std::span<std::byte> region, int tasks) : region_(region), tasks_(tasks) {}

  [[nodiscard]] int tasks() const { return tasks_; }
  [[nodiscard]] Mailbox& mailbox(int task) const;
  [[nodiscard]] ByteRing& ring(int from, int to) const;
  // Grows whenever a mailbox's standing changes.
  [[nodiscard]] std::atomic<std::uint32_t>& changes() const {
    return *reinterpret_cast<std::atomic<std::uint32_t>*>(region_.data());
  }
  // Changes the standing of a task and wakes all.
  void change(int task, Standing standing) const;
  // For the launcher: the process of a task has ended. If it has not joined, it never will: it is
  // lost if a signal has ended it, else it has left.
  void note_end(int task, bool by_signal) const;

 private:
  std::span<std::byte> region_;
  int tasks_;
};

// A task's place in a job, as its environment says it (SHIMA_LAPI).
struct JobPlace {
  int descriptor = -1;  // of the job's memory
  int task = 0;
  int tasks = 1;
};
inline constexpr const char* job_variable = "SHIMA_LAPI";
[[nodiscard]] std::string describe(const JobPlace& place);
[[nodiscard]] std::optional<JobPlace> parse_job_place(const char* text);

// For the launcher: the memory of a job whose tasks are all on this node.
[[nodiscard]] Result<UniqueFd> make_job_memory(int tasks);
// Maps the region of a context. The memory must be that of a job with so many tasks.
[[nodiscard]] Result<Mapping> map_job_memory(const JobPlace& place, int context);

}  // namespace shima::lapi
