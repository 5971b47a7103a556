// What all tasks of a job show at one time: plain data, read from boards or from a recording.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "observe/board_page.h"
#include "observe/call.h"

namespace shima::tool {

struct Tally {
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const Tally&, const Tally&) = default;
};

struct FileSample {
  std::string name;
  std::uint64_t key = 0;  // the same in all tasks that have opened it together
  std::uint32_t met = 0;  // collective calls begun
  Tally written;
  Tally read;
  friend bool operator==(const FileSample&, const FileSample&) = default;
};

struct TaskSample {
  std::string host;
  int pid = 0;
  std::string kind;  // mpi, lapi, dsm, node, files
  std::string program;
  std::string job;
  int rank = -1;
  int tasks = -1;           // of its job
  bool has_ended = false;   // its process
  std::uint64_t up_ms = 0;  // since it has begun to show itself
  std::array<Tally, counted_kinds> counted{};
  CallCode call = call::none;      // what it does
  std::string file = {};           // and in which file
  std::uint64_t key = 0;           // of that file
  std::uint32_t serial = 0;        // of the call
  std::uint64_t asleep_ms = 0;     // in a wait at present; 0: not
  std::uint64_t uncounted_ms = 0;  // of it, what the counter of waits does not have yet
  int waits_for = -1;              // rank; -1: not known
  std::uint32_t met = 0;           // calls in which all tasks of the job meet
  int queued = 0;
  int clients = 0;
  std::vector<FileSample> files = {};
  // Of tasks of this machine: the hosts of its job, as far as it knows (base/process/host_list.h),
  // and whether it is this user's.
  std::string hosts = {};
  bool is_own = false;

  [[nodiscard]] const Tally& of(Counted what) const {
    return counted[static_cast<std::size_t>(what)];
  }
  [[nodiscard]] bool is_node() const { return kind == "node"; }
  // Bytes in each direction, over all kinds of calls.
  [[nodiscard]] std::uint64_t bytes_written() const;
  [[nodiscard]] std::uint64_t bytes_read() const;
  [[nodiscard]] std::uint64_t calls() const;
  // Time in waits, with the present one.
  [[nodiscard]] std::uint64_t wait_ns() const {
    return of(Counted::wait).bytes + uncounted_ms * 1'000'000;
  }
  friend bool operator==(const TaskSample&, const TaskSample&) = default;
};

// A host of the job from which the sample has no task: it was not asked, has not answered yet, does
// not answer, or knows no task of the job.
struct AbsentHost {
  enum class Why : std::uint8_t { not_asked, asked, silent, no_task };
  std::string name;
  Why why = Why::not_asked;
  friend bool operator==(const AbsentHost&, const AbsentHost&) = default;
};

struct Sample {
  std::uint64_t time_ms = 0;  // since 1970
  std::vector<TaskSample> tasks;
  std::vector<AbsentHost> absent = {};
  friend bool operator==(const Sample&, const Sample&) = default;
};

// The ranks that a task waits for, as far as the sample tells. Pure.
struct WaitReason {
  std::vector<int> ranks;
  std::string text;  // empty: it does not wait
};
[[nodiscard]] WaitReason wait_reason(const Sample& sample, const TaskSample& task);

// Whether the job has tasks that are not in the sample, as far as it tells. Pure.
[[nodiscard]] bool lacks_tasks(const Sample& sample);
// What is not shown, and the command that shows it; empty if nothing is missing. One line. Pure.
[[nodiscard]] std::string absence_note(const Sample& sample);

// "0-3, 7".
[[nodiscard]] std::string rank_list(std::vector<int> ranks);

}  // namespace shima::tool
