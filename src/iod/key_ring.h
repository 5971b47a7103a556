// The keys that a daemon accepts, and what the holder of each may do.
//
// The daemon's own key gives access as the daemon's user. A file of keys has a line for each user,
// "USER KEY-FILE [NAME,NAME...]": requests with such a key are executed as that user, on the
// targets and directories of those names (all of them, if none is named). "%u" in the path of a
// target or directory stands for the user's name, so that each user may have one of their own.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "iod/allowance.h"
#include "iod/identity.h"
#include "iod/session.h"
#include "net/key_proof.h"

namespace shima::iod {

struct KeyHolder {
  KeyHolder(std::string user_name, Key own_key, ServedTargets served, std::size_t memory_bytes)
      : user(std::move(user_name)),
        key(std::move(own_key)),
        targets(std::move(served)),
        memory(memory_bytes),
        call_memory(std::make_shared<Allowance>(memory_bytes)) {}

  std::string user;  // empty: the daemon's own
  Key key;
  std::optional<Identity> identity;  // nothing: the daemon's own
  ServedTargets targets;
  Allowance memory;
  // Of collective calls. A call that waits for it keeps no request waiting: those that take part in
  // other calls may need one to go on.
  std::shared_ptr<Allowance> call_memory;
  std::atomic<std::size_t> connections = 0;
};

class KeyRing {
 public:
  struct Source {
    std::string key_file;   // the daemon's own key; empty: none
    std::string keys_file;  // keys of users; empty: none
    std::vector<TargetPlace> targets;
    std::vector<TargetPlace> directories;  // served by path; their names differ from the targets'
    std::size_t memory_bytes = 0;          // of each holder, for requests and for calls
  };
  // Holders and targets of `former` that have not changed stay the same objects. Users other than
  // the daemon's own need a daemon of root.
  [[nodiscard]] static Result<KeyRing> read(const Source& source, const KeyRing& former);

  // In the order of holders().
  [[nodiscard]] std::span<const Key> keys() const { return keys_; }
  [[nodiscard]] std::span<const std::shared_ptr<KeyHolder>> holders() const { return holders_; }
  // Without duplicates.
  [[nodiscard]] const ServedTargets& targets() const { return targets_; }

 private:
  [[nodiscard]] Status read_users(const Source& source, const KeyRing& former);
  [[nodiscard]] Status add(std::string user, Key key, std::optional<Identity> identity,
                           ServedTargets targets, const Source& source, const KeyRing& former);
  [[nodiscard]] ServedTargets served_to(const std::string& user, const Source& offered,
                                        const KeyRing& former);
  [[nodiscard]] std::shared_ptr<ServedTarget> served(const TargetPlace& place, bool is_directory,
                                                     const KeyRing& former);

  std::vector<Key> keys_;
  std::vector<std::shared_ptr<KeyHolder>> holders_;
  ServedTargets targets_;
};

}  // namespace shima::iod
