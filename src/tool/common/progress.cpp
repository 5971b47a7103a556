#include "tool/common/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <iterator>

namespace shima::tool {
namespace {

constexpr auto pause = std::chrono::milliseconds(200);
constexpr int bar_width = 24;

std::size_t columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

std::string human_bytes(double bytes) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(units); ++unit) bytes /= 1024;
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, units[unit]);
}

std::string progress_line(const std::string& label, std::uint64_t done_bytes,
                          std::uint64_t total_bytes, double seconds) {
  const double part =
      total_bytes == 0 ? 1.0 : static_cast<double>(done_bytes) / static_cast<double>(total_bytes);
  const int filled = static_cast<int>(part * bar_width);
  std::string line = fmt::format("{}  [{:<{}}] {:3.0f} %  {} of {}", label,
                                 std::string(static_cast<std::size_t>(filled), '#'), bar_width,
                                 part * 100, human_bytes(static_cast<double>(done_bytes)),
                                 human_bytes(static_cast<double>(total_bytes)));
  if (seconds < 0.5 || done_bytes == 0) return line;
  const double rate = static_cast<double>(done_bytes) / seconds;
  return line + fmt::format("  {}/s  {:.0f} s left", human_bytes(rate),
                            static_cast<double>(total_bytes - done_bytes) / rate);
}

Progress::Progress(std::string label)
    : label_(std::move(label)),
      on_(::isatty(STDERR_FILENO) == 1),
      begin_(Clock::now()),
      next_(begin_ + pause) {}

Progress::~Progress() {
  if (drawn_) fmt::print(stderr, "\r\033[K");
}

void Progress::show(std::uint64_t done_bytes, std::uint64_t total_bytes) {
  if (!started_) first_bytes_ = done_bytes;
  started_ = true;
  if (!due()) return;
  const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
  draw(progress_line(label_, done_bytes - first_bytes_, total_bytes - first_bytes_, seconds));
}

void Progress::say(const std::string& text) {
  if (due()) draw(label_ + " " + text);
}

bool Progress::due() {
  if (!on_ || Clock::now() < next_) return false;
  next_ = Clock::now() + pause;
  return true;
}

void Progress::draw(const std::string& line) {
  fmt::print(stderr, "\r{}\033[K", line.substr(0, columns() - 1));
  std::fflush(stderr);
  drawn_ = true;
}

}  // namespace shima::tool
