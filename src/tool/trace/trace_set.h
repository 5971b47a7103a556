// The traces of a job's processes (observe/trace_file.h), with one clock for all.
//
// The events stay in the files, which are mapped: a job of many ranks has more of them than fit
// into memory.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "observe/trace_file.h"
#include "tool/common/failure.h"

namespace shima::tool {

// An open mapping of a file.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MappedFile();
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

struct CallSite {
  std::string module;
  std::uint64_t offset = 0;   // in the module
  std::uint64_t address = 0;  // in the process
  std::string text;           // "solver.c:120 in step"
};

struct ProcessTrace {
  std::string host;
  std::string program;
  std::string boot;
  int pid = 0;
  int rank = -1;
  int tasks = -1;
  std::int64_t shift_ns = 0;  // from its clock to the job's
  // The first trace of the same process: each library of Shima in it (MPI-IO, LAPI) writes one.
  std::size_t owner = 0;
  std::uint64_t dropped = 0;
  std::uint64_t dropped_bytes = 0;
  std::vector<std::string> files = {};
  std::vector<CallSite> sites = {};
  std::span<const TraceEvent> events = {};  // some may not be set

  // Calls `use` for each event in the order in which they ended.
  void for_each(const std::function<void(const TraceEvent&)>& use) const;
  [[nodiscard]] std::int64_t begin_of(const TraceEvent& event) const {
    return static_cast<std::int64_t>(event.begin_ns) + shift_ns;
  }
  [[nodiscard]] std::int64_t end_of(const TraceEvent& event) const {
    return begin_of(event) + static_cast<std::int64_t>(event.duration_ns);
  }
  [[nodiscard]] const std::string& file_of(const TraceEvent& event) const;
  [[nodiscard]] const CallSite* site_of(const TraceEvent& event) const;
};

struct TraceSet {
  std::vector<ProcessTrace> processes;  // by rank; several of one process have one rank
  std::vector<MappedFile> mappings;
  std::int64_t begin_ns = 0;            // of the first event
  std::int64_t end_ns = 0;              // of the last one
  std::vector<std::string> unreadable;  // files that are no traces, and why

  [[nodiscard]] std::size_t process_count() const;
  [[nodiscard]] std::uint64_t dropped() const;
  // The ranks of the job without a trace.
  [[nodiscard]] std::vector<int> missing() const;
  // The number of a process in the output: its rank, if no other has it.
  [[nodiscard]] int number_of(std::size_t trace) const;
};

// Reads a mapped trace; its spans refer to `bytes`.
[[nodiscard]] Outcome<ProcessTrace> read_trace(std::span<const std::byte> bytes,
                                               const std::string& name);
// All traces of a directory.
[[nodiscard]] Outcome<TraceSet> read_traces(const std::string& directory);
// Gives all processes one clock, sorts them, finds their owners and the ends.
void align(TraceSet& set);

}  // namespace shima::tool
