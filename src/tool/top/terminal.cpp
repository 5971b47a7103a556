#include "tool/top/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>

namespace shima::tool {
namespace {

constexpr std::string_view enter_sequence = "\x1b[?1049h\x1b[?25l\x1b[2J";
constexpr std::string_view leave_sequence = "\x1b[0m\x1b[?25h\x1b[?1049l";

void put(std::string_view text) {
  while (!text.empty()) {
    const ssize_t len = ::write(STDOUT_FILENO, text.data(), text.size());
    if (len < 0 && errno == EINTR) continue;
    if (len <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(len));
  }
}

struct Sequence {
  std::string_view text;
  Key key;
};
constexpr std::array sequences{
    Sequence{"\x1b[A", Key::up},       Sequence{"\x1b[B", Key::down},
    Sequence{"\x1bOA", Key::up},       Sequence{"\x1bOB", Key::down},
    Sequence{"\x1b[5~", Key::page_up}, Sequence{"\x1b[6~", Key::page_down},
    Sequence{"\x1b[H", Key::home},     Sequence{"\x1b[F", Key::end},
    Sequence{"\x1b[1~", Key::home},    Sequence{"\x1b[4~", Key::end},
    Sequence{"\x1bOH", Key::home},     Sequence{"\x1bOF", Key::end}};

// The length of a sequence of the terminal that begins here.
std::size_t length_of_sequence(std::string_view text) {
  if (text.size() < 2 || (text[1] != '[' && text[1] != 'O')) return 1;
  std::size_t end = 2;
  while (end < text.size() && (text[end] < '@' || text[end] > '~')) ++end;
  return std::min(end + 1, text.size());
}

Press take_one(std::string& unread) {
  const char first = unread.front();
  std::size_t len = 1;
  Press press;
  if (first == '\x1b') {
    len = length_of_sequence(unread);
    press.key = len == 1 ? Key::escape : Key::none;
    for (const Sequence& one : sequences)
      if (unread.substr(0, len) == one.text) press.key = one.key;
  } else if (first == '\r' || first == '\n') {
    press.key = Key::enter;
  } else if (first == '\x7f' || first == '\b') {
    press.key = Key::backspace;
  } else if (first >= ' ') {
    press.character = static_cast<char32_t>(first);
  }
  unread.erase(0, len);
  return press;
}

}  // namespace

std::vector<Press> take_keys(std::string& unread) {
  std::vector<Press> keys;
  while (!unread.empty()) keys.push_back(take_one(unread));
  return keys;
}

Outcome<void> Terminal::check() {
  if (::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1) return {};
  return refuse("shima top", "standard input or output is no terminal",
                "use --once, or --record FILE");
}

Charset Terminal::charset() {
  for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* const value = std::getenv(variable);
    if (value == nullptr || *value == '\0') continue;
    const std::string_view text(value);
    const bool is_unicode = text.find("UTF-8") != text.npos || text.find("utf8") != text.npos ||
                            text.find("UTF8") != text.npos || text.find("utf-8") != text.npos;
    return is_unicode ? Charset::unicode : Charset::ascii;
  }
  return Charset::ascii;
}

Terminal::Terminal() {
  ::tcgetattr(STDIN_FILENO, &before_);
  sigset_t watched;
  sigemptyset(&watched);
  for (const int signal : {SIGWINCH, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP})
    sigaddset(&watched, signal);
  sigprocmask(SIG_BLOCK, &watched, &mask_before_);
  signals_ = UniqueFd(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  enter();
}

Terminal::~Terminal() {
  leave();
  sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

void Terminal::enter() {
  termios raw = before_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  ::tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
  put(enter_sequence);
}

void Terminal::leave() {
  put(leave_sequence);
  ::tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
}

Size Terminal::size() const {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
    return {};
  return {size.ws_col, size.ws_row};
}

// Each line ends by erasing what was there before; so nothing flickers.
void Terminal::show(const std::vector<std::string>& lines) {
  std::string text = "\x1b[H";
  for (std::size_t i = 0; i < lines.size(); ++i)
    text += (i == 0 ? "" : "\r\n") + lines[i] + "\x1b[K";
  put(text + "\x1b[J");
}

void Terminal::heed_signals(Event& event) {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGWINCH) continue;
    if (signal != SIGTSTP) {
      event.is_over = true;
      continue;
    }
    leave();
    ::raise(SIGSTOP);
    enter();
  }
}

Terminal::Event Terminal::wait(std::chrono::milliseconds limit) {
  Event event;
  std::array<pollfd, 2> watched{{{STDIN_FILENO, POLLIN, 0}, {signals_.get(), POLLIN, 0}}};
  if (::poll(watched.data(), watched.size(), static_cast<int>(limit.count())) <= 0) return event;
  if (watched[1].revents != 0) heed_signals(event);
  if (watched[0].revents == 0) return event;
  std::array<char, 256> read{};
  const ssize_t len = ::read(STDIN_FILENO, read.data(), read.size());
  if (len <= 0) {
    event.is_over = len == 0 || errno != EINTR;
    return event;
  }
  unread_.append(read.data(), static_cast<std::size_t>(len));
  event.keys = take_keys(unread_);
  return event;
}

}  // namespace shima::tool
