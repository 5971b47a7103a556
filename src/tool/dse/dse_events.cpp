// What wakes `shima dse run`: daemons, signals, and its standard streams.
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "dse/orders.h"
#include "tool/dse/dse_job.h"

namespace shima::tool {
namespace {

// Output that has not been written yet, beyond which no more is asked for.
constexpr std::size_t most_backlog_bytes = std::size_t{1} << 20;

}  // namespace

sigset_t DseJob::watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT})
    sigaddset(&set, signal);
  return set;
}

// Waits until something happens, and serves it.
void DseJob::pump(int timeout_ms) {
  std::vector<pollfd> watched{{signals_, POLLIN, 0}};
  if (reception_) watched.push_back({reception_->bell(), POLLIN, 0});
  for (const auto& link : newcomers_) watched.push_back({link->socket(), POLLIN, 0});
  for (const HostState& one : hosts_) {
    if (!one.link) continue;
    const short events = one.link->has_unsent() ? POLLIN | POLLOUT : POLLIN;
    watched.push_back({one.link->socket(), events, 0});
  }
  const bool has_input = wants_input();
  if (has_input) watched.push_back({STDIN_FILENO, POLLIN, 0});
  const std::size_t input_at = watched.size() - 1;
  console_.watch(watched);
  if (console_.has_parts() && (timeout_ms < 0 || timeout_ms > Console::pause_ms))
    timeout_ms = Console::pause_ms;
  const int ready = poll(watched.data(), watched.size(), timeout_ms);
  if (ready == 0) console_.release_parts();
  if (ready <= 0) return;
  if (watched.front().revents != 0) read_signals();
  serve_newcomers();
  serve_hosts();
  if (has_input && watched[input_at].revents != 0) read_input();
  console_.write(watched);
  pay();
}

void DseJob::serve_hosts() {
  for (int host = 0; host < static_cast<int>(hosts_.size()); ++host) {
    HostState& one = hosts_[static_cast<std::size_t>(host)];
    if (!one.link) continue;
    one.link->flush();
    const Status served = one.link->receive();
    if (!served) lose_host(host, served.error());
  }
}

// Tells the daemons that their output has been taken, unless too much of it waits.
void DseJob::pay() {
  if (console_.backlog_bytes() > most_backlog_bytes) return;
  for (HostState& one : hosts_) {
    if (!one.link || one.owed_bytes == 0) continue;
    one.link->send(dse::to_daemon::taken,
                   dse::Packed().number(static_cast<std::int64_t>(one.owed_bytes)));
    one.owed_bytes = 0;
  }
}

void DseJob::read_signals() {
  signalfd_siginfo info{};
  while (read(signals_, &info, sizeof info) == sizeof info) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD)
      reap_starters();
    else
      heed_signal(signal);
  }
}

// The tasks decide what a signal means; who asks twice means the job.
void DseJob::heed_signal(int signal) {
  if (stage_ == Stage::ending) return;
  if (stage_ == Stage::starting) {
    const bool ends = signal != SIGCONT && signal != SIGUSR1 && signal != SIGUSR2;
    if (ends && !failure_)
      failure_ = {"shima dse run", std::string("a signal (") + strsignal(signal) + ") has come",
                  "nothing has been started"};
    return;
  }
  sent_signals_.insert(signal);
  for (HostState& one : hosts_)
    if (one.link) one.link->send(dse::to_daemon::signal, dse::Packed().number(signal));
  if ((signal == SIGINT || signal == SIGTERM) && ++ends_asked_ >= 2) {
    note_code(exit_signalled_base + signal);
    begin_end();
  }
}

// Not from a terminal that belongs to another job of the shell: reading would stop this process.
bool DseJob::wants_input() const {
  if (stage_ != Stage::running || is_input_over_) return false;
  bool has_reader = false;
  for (const int number : readers_) {
    const TaskState& task = tasks_[static_cast<std::size_t>(number)];
    if (!task.has_ended && task.input_bytes >= dse::input_window_bytes) return false;
    has_reader |= !task.has_ended;
  }
  return has_reader && (isatty(STDIN_FILENO) == 0 || tcgetpgrp(STDIN_FILENO) == getpgrp());
}

void DseJob::read_input() {
  std::array<char, dse::most_chunk_bytes> chunk;
  const ssize_t got = read(STDIN_FILENO, chunk.data(), chunk.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  const std::size_t len = got > 0 ? static_cast<std::size_t>(got) : 0;
  is_input_over_ = len == 0;
  for (const int number : readers_) {
    TaskState& task = tasks_[static_cast<std::size_t>(number)];
    auto& link = hosts_[static_cast<std::size_t>(task.host)].link;
    if (task.has_ended || !link) continue;
    link->send(dse::to_daemon::input, dse::Packed().number(number), {chunk.data(), len});
    task.input_bytes += len;
  }
}

}  // namespace shima::tool
