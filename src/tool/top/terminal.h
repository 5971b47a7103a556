// The terminal of a full-screen program: alternate screen, keys, size, signals.
//
// Plain sequences that every terminal of today knows (ECMA-48, xterm), and no library: the screen
// is a list of lines that a pure function makes, and is written as a whole. The terminal is as it
// was before when the object is destroyed, when the program is stopped (SIGTSTP), and when it ends
// by a signal.
#pragma once

#include <termios.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "tool/common/failure.h"
#include "tool/top/screen.h"

namespace shima::tool {

class Terminal {
 public:
  [[nodiscard]] static Outcome<void> check();
  Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal();

  [[nodiscard]] Size size() const;
  void show(const std::vector<std::string>& lines);
  // What has happened: keys; or nothing within the time; or the size has changed.
  struct Event {
    std::vector<Press> keys;
    bool is_over = false;  // a signal ends the program, or the terminal is gone
  };
  [[nodiscard]] Event wait(std::chrono::milliseconds limit);
  [[nodiscard]] static Charset charset();

 private:
  void enter();
  void leave();
  void heed_signals(Event& event);

  termios before_{};
  sigset_t mask_before_{};
  UniqueFd signals_;
  std::string unread_;
};

// The keys in what a terminal sends; takes what is complete.
[[nodiscard]] std::vector<Press> take_keys(std::string& unread);

}  // namespace shima::tool
