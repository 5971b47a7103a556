// shima trace, and what `shima run --trace --html` does at the end of a job.
#pragma once

#include <string>
#include <utility>

#include "tool/common/failure.h"

namespace shima::tool {

struct TraceOptions {
  std::string directory;  // of the traces of all processes
  std::string trace;      // the file for a Chrome trace; empty: none
  std::string html;       // the file for a page; empty: none
};

[[nodiscard]] Outcome<int> merge_traces(const TraceOptions& options);

// A directory for the traces of a job, beside the file that they become; processes find it in
// SHIMA_TRACE.
class TraceDirectory {
 public:
  [[nodiscard]] static Outcome<TraceDirectory> make(const TraceOptions& options);
  TraceDirectory(TraceDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TraceDirectory& operator=(TraceDirectory&&) = delete;
  ~TraceDirectory();  // removes it
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  TraceDirectory() = default;
  std::string path_;
};

}  // namespace shima::tool
