// What the daemon knows of a connection.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "iod/key_ring.h"

namespace shima::iod {

enum class Activity : std::uint8_t { none, waiting, working };

struct Client {
  UniqueFd socket;
  std::string peer;
  Clock::time_point since = Clock::now();
  std::string process;                // as it introduced itself; guarded by the daemon's mutex
  std::shared_ptr<KeyHolder> holder;  // written before is_trusted
  std::atomic<bool> is_trusted = false;
  std::atomic<bool> has_ended = false;
  std::atomic<Activity> activity = Activity::none;
  Traffic traffic;
  std::thread thread;
};

}  // namespace shima::iod
