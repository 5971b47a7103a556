// Which clients hold locks on the files of a node, for the error message of one that waits in vain:
// to the kernel, all of them are this process.
#pragma once

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "store/subfile/subfile.h"

namespace shima::iod {

class LockHolders {
 public:
  struct Lock {
    const void* session = nullptr;
    FileIdentity file;
    TargetRange range;
    std::string client;
  };

  // Not beyond a number that no client needs.
  void add(Lock lock) {
    const std::lock_guard hold(mutex_);
    if (std::ranges::count(locks_, lock.session, &Lock::session) < most_of_session)
      locks_.push_back(std::move(lock));
  }
  // Of a session: those within a range of its file, or all.
  void remove(const void* session, TargetRange range) {
    const std::lock_guard hold(mutex_);
    std::erase_if(locks_, [&](const Lock& one) {
      return one.session == session && one.range.begin >= range.begin && one.range.end <= range.end;
    });
  }
  void remove_all(const void* session) {
    const std::lock_guard hold(mutex_);
    std::erase_if(locks_, [&](const Lock& one) { return one.session == session; });
  }
  // Another session's client that has a lock there; empty: none is known.
  [[nodiscard]] std::string find(const void* session, const FileIdentity& file, TargetRange range) {
    const std::lock_guard hold(mutex_);
    const auto found = std::ranges::find_if(locks_, [&](const Lock& one) {
      return one.session != session && one.file == file && one.range.begin < range.end &&
             range.begin < one.range.end;
    });
    return found == locks_.end() ? std::string() : found->client;
  }

 private:
  static constexpr std::ptrdiff_t most_of_session = 64;

  std::mutex mutex_;
  std::vector<Lock> locks_;
};

}  // namespace shima::iod
