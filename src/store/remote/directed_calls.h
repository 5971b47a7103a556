// A client's side of the collective calls on a subfile that its I/O node directs.
//
// They use a connection of their own, over which the file is opened when the first call needs it:
// a call waits for other processes, and the file's own connection serves other threads meanwhile.
// Only one call is in progress at a time.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "store/remote/connection.h"
#include "store/subfile/directed_call.h"

namespace shima::remote {

// A connection over which a file is open.
struct Opened {
  std::unique_ptr<Connection> connection;
  Facts facts;
};
// A file that a node has been asked to open, by Op::open or Op::open_path.
class FarOpening {
 public:
  FarOpening(const Node& node, const std::string& key_file, const Request& wanted);
  // Waits for the node. Call once.
  [[nodiscard]] Result<Opened> finish();

 private:
  Result<std::unique_ptr<Connection>> connection_;
  Status sent_;
};
[[nodiscard]] Result<Opened> open_over_connection(const Node& node, const std::string& key_file,
                                                  const Request& wanted);

class DirectedCalls {
 public:
  // `open` opens the file once more; `facts`: of the file.
  DirectedCalls(std::function<Result<Opened>()> open, const Facts& facts)
      : open_(std::move(open)), facts_(facts) {}

  // The part must not outlive this object.
  [[nodiscard]] Result<std::unique_ptr<DirectedPart>> join(const DirectedCall& call);
  void close();
  // Whether the I/O node was lost in a call.
  [[nodiscard]] bool has_lost() const { return has_lost_; }

 private:
  std::function<Result<Opened>()> open_;
  Facts facts_;
  std::unique_ptr<Connection> idle_;
  std::atomic<bool> has_lost_ = false;
};

}  // namespace shima::remote
