// What a client of an I/O node may do: its requests, executed on the node's targets.
//
// A request names a target that the node serves and a part in it; other names are refused, so
// nothing outside the targets is opened. A session has at most one open file and one lease, which
// end with it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "independent/run_merger.h"
#include "iod/buffer.h"
#include "iod/call_table.h"
#include "iod/lock_holders.h"
#include "iod/tree_session.h"
#include "observe/board.h"
#include "store/remote/message.h"
#include "store/target/target.h"

namespace shima::iod {

// What has been served; counted by several threads.
struct Traffic {
  std::atomic<std::uint64_t> requests = 0;
  std::atomic<std::uint64_t> directed_calls = 0;
  std::atomic<std::uint64_t> read_bytes = 0;
  std::atomic<std::uint64_t> written_bytes = 0;
};

struct ServedTarget {
  TargetPlace place;
  bool is_directory = false;  // of master files and other files, served by path
  Traffic traffic;
  std::atomic<std::size_t> open_files = 0;
  BoardFile shown;
};
using ServedTargets = std::vector<std::shared_ptr<ServedTarget>>;

class Session {
 public:
  // What all sessions share.
  struct Shared {
    RunMergers& mergers;
    LockHolders& lock_holders;
  };
  // `client`: its name, for other clients; it may change.
  Session(const ServedTargets& served, Traffic& own, const Shared& shared,
          const std::string& client)
      : served_(served), own_(own), shared_(shared), client_(client) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() { forget_file(); }

  // Executes a request. `data`: those of the request; afterwards those of the reply. Returns the
  // value of the reply.
  [[nodiscard]] Result<std::int64_t> execute(const remote::Request& request, Buffer& data);
  // Takes part in a collective call on the open file, from its beginning to its end. From the first
  // call on, the file serves such calls only. After an error the connection cannot be used.
  [[nodiscard]] Status take_part(const DirectedCall& call, Arrival from, CallTable& calls);

 private:
  [[nodiscard]] Result<std::int64_t> dispatch(const remote::Request& request, Buffer& data);
  [[nodiscard]] Result<std::int64_t> execute_on_target(const remote::Request& request,
                                                       Buffer& data);
  [[nodiscard]] Result<std::int64_t> execute_by_name(const remote::Request& request,
                                                     TargetFiles& files, Buffer& data);
  [[nodiscard]] Result<std::int64_t> list(const std::string& known, TargetFiles& files,
                                          Buffer& data);
  [[nodiscard]] Result<std::int64_t> execute_on_file(const remote::Request& request, Buffer& data);
  [[nodiscard]] Result<std::int64_t> execute_on_lock(const remote::Request& request, Buffer& data);
  [[nodiscard]] Result<std::int64_t> execute_on_lease(const remote::Request& request, Buffer& data);
  [[nodiscard]] Result<std::int64_t> execute_on_tree(const remote::Request& request, Buffer& data);
  [[nodiscard]] Result<ServedTarget*> find(std::string_view wanted, bool is_directory) const;
  [[nodiscard]] Result<std::int64_t> attach(const std::string& wanted, const std::string& file,
                                            ServedTarget& target, bool makes_target);
  // Shared: a further target that is attached may take the place of this one.
  [[nodiscard]] Result<std::shared_ptr<TargetFiles>> files_of(const std::string& wanted,
                                                              ServedTarget& target);
  std::int64_t keep_open(std::unique_ptr<Subfile> file, ServedTarget& target, std::int64_t opening,
                         const remote::Facts& facts, Buffer& data);
  [[nodiscard]] Result<std::int64_t> open(const remote::Request& request, ServedTarget& target,
                                          TargetFiles& files, Buffer& data);
  [[nodiscard]] Result<std::int64_t> read(const remote::Request& request, Buffer& data);
  [[nodiscard]] Result<std::int64_t> write(const remote::Request& request, Buffer& data);
  [[nodiscard]] FileIdentity identity() const { return {file_facts_.device, file_facts_.inode}; }
  [[nodiscard]] Result<bool> move_merged(Direction direction, std::span<MergeRun> runs);
  void forget_file();
  void count_read(std::uint64_t bytes);
  void count_written(std::uint64_t bytes);

  const ServedTargets& served_;
  Traffic& own_;
  Shared shared_;
  const std::string& client_;
  std::map<std::string, std::shared_ptr<TargetFiles>> targets_;  // by the request's word
  TreeSession tree_;
  std::unique_ptr<Subfile> file_;
  std::int64_t opening_ = 0;                // how it was opened (remote::Opening)
  std::optional<LogicalFile> common_file_;  // instead of it, once it serves collective calls
  ServedTarget* file_target_ = nullptr;
  remote::Facts file_facts_;
  // From its first request of several runs on, by direction.
  std::array<std::shared_ptr<RunMerger>, 2> merger_;
  std::unique_ptr<WriterLease> lease_;
};

}  // namespace shima::iod
