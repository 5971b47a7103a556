// The threads that run completion handlers, which may communicate and wait.
//
// There is one thread unless the program asks for more, so that handlers may share data without
// locks. It starts with the first handler.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/result.h"

namespace shima::lapi {

class Completions {
 public:
  explicit Completions(int most_threads) : most_threads_(most_threads) {}
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;
  ~Completions() { end(); }

  void add(std::function<void()> work);
  // Waits until all work has been done.
  void finish();
  void end();
  // Whether the calling thread is one of these.
  [[nodiscard]] static bool is_own_thread();

 private:
  void run();

  int most_threads_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  int busy_ = 0;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace shima::lapi
