// A progress line for long operations, on a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace shima::tool {

// "1.5 GiB".
[[nodiscard]] std::string human_bytes(double bytes);

// The line: "copying x  [#####     ] 50 %  1.0 GiB of 2.0 GiB  500.0 MiB/s  2 s left". Pure.
[[nodiscard]] std::string progress_line(const std::string& label, std::uint64_t done_bytes,
                                        std::uint64_t total_bytes, double seconds);

// Draws on stderr if that is a terminal, a few times a second, and erases the line at the end.
class Progress {
 public:
  explicit Progress(std::string label);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  void show(std::uint64_t done_bytes, std::uint64_t total_bytes);
  void say(const std::string& text);

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] bool due();
  void draw(const std::string& line);

  std::string label_;
  bool on_;
  bool drawn_ = false;
  Clock::time_point begin_;
  Clock::time_point next_;
  std::uint64_t first_bytes_ = 0;  // done before the start: a resumed copy
  bool started_ = false;
};

}  // namespace shima::tool
