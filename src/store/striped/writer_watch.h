// Detects whether any process has files open for writing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/striped/parts.h"

namespace shima {

class WriterWatch {
 public:
  // file_in_use if another process has one of the parts open for writing, or watches them as well;
  // unsupported_operation where a writer would not be detected, as on other nodes.
  [[nodiscard]] static Result<WriterWatch> begin(const std::vector<Part>& parts);

  // file_in_use if any process has opened one for writing since then, or changed it. A process that
  // is blocked in open(2) meanwhile continues when the watch ends.
  [[nodiscard]] Status still_alone() const;

  // A number that changes with sizes or modification times.
  [[nodiscard]] std::uint64_t stamp() const { return stamp_; }

 private:
  struct Watched {
    std::unique_ptr<WriterLease> lease;
    std::string path;
  };
  WriterWatch() = default;
  [[nodiscard]] Result<std::uint64_t> stamp_now() const;

  std::vector<Watched> files_;
  std::uint64_t stamp_ = 0;
};

}  // namespace shima
