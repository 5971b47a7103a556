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
  Completions(int most_threads, const void* engine)
      : most_threads_(most_threads), engine_(engine) {}
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;
  ~Completions() { end(); }

  // If no thread can be started, the work is done at once.
  void add(std::function<void()> work);
  // Waits until all work has been done.
  void finish();
  void end();
  // Whether there is work that another thread does.
  [[nodiscard]] bool is_busy();

 private:
  void run();

  int most_threads_;
  const void* engine_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  int busy_ = 0;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace shima::lapi
