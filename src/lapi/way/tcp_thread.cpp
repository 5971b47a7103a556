// The thread of TcpTransport: receives when the program does not, hears the meeting place, and
// sends what has been gathered.
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/log.h"
#include "lapi/way/tcp_transport.h"

namespace shima::lapi {
namespace {

using Kind = MeetingNotice::Kind;

constexpr std::int64_t gather_us = 50;
constexpr std::int64_t duty_us = 1000;
constexpr std::int64_t tick_us = 10'000;
constexpr std::int64_t check_ends_us = 50'000;
constexpr std::int64_t check_answers_us = 500'000;

}  // namespace

void TcpTransport::run() {
  ::prctl(PR_SET_TIMERSLACK, 1000UL);  // ns
  while (!stopping_) {
    wait();
    if (stopping_) return;
    // A program on the same core receives before this thread sees that there is data.
    if (on_duty_ && gather_clock_ && is_attended()) go_off_duty();
    if (gather_clock_ || !on_duty_) send_gathered();
    if (has_clock_) tick();
    if (has_ends_) check_ends();
    if (awaits_answers_) check_answers();
    think_about_duty();
    std::vector<int> unreachable;
    {
      const std::lock_guard hold(ordering_);
      unreachable.swap(unreachable_);
    }
    for (const int task : unreachable) lose(task);
  }
}

// How long it may sleep; -1: for ever.
std::int64_t TcpTransport::patience_us() {
  if (gather_clock_) return gather_us;
  if (!on_duty_ && !is_resting_) return duty_us;
  if (has_clock_) return tick_us;
  if (has_ends_) return check_ends_us;
  return awaits_answers_ ? check_answers_us : -1;
}

void TcpTransport::wait() {
  const bool has_work = on_duty_ && !may_sleep();
  const std::int64_t patience = has_work ? 0 : patience_us();
  const timespec limit{0, patience * 1000};
  std::array<pollfd, 4> watched{{{wake_.get(), POLLIN, 0},
                                 {has_place_ ? meeting_.get() : -1, POLLIN, 0},
                                 {on_duty_ ? epoll_.get() : -1, POLLIN, 0},
                                 {on_duty_ && fabric_ ? fabric_->descriptor() : -1, POLLIN, 0}}};
  if (::ppoll(watched.data(), watched.size(), patience < 0 ? nullptr : &limit, nullptr) < 0) return;
  std::uint64_t kicks = 0;
  if (watched[0].revents != 0) std::ignore = ::read(wake_.get(), &kicks, sizeof kicks);
  if (stopping_) return;
  if (watched[1].revents != 0) hear();
  if (has_work || watched[2].revents != 0 || watched[3].revents != 0) serve_sockets();
}

void TcpTransport::serve_sockets() {
  if (!is_attended()) return events_.serve();
  go_off_duty();
}

void TcpTransport::go_off_duty() {
  on_duty_.store(false, std::memory_order_seq_cst);
  seen_attendances_ = attendances_.load();
  looked_at_duty_ = Clock::now();
  if (fabric_) wake_sleeper();  // what this thread has taken from a fabric wakes no other
}

// Whether a thread of the program receives, or none shall.
bool TcpTransport::is_attended() {
  if (bell_->polling.load(std::memory_order_seq_cst) != 0) return true;
  if (bell_->attending.load(std::memory_order_seq_cst) == 0)
    return bell_->interrupts.load(std::memory_order_seq_cst) == 0;
  return has_sleeper_.load(std::memory_order_seq_cst) ||
         bell_->attendants.sleepers.load(std::memory_order_seq_cst) == 0;
}

// Off duty, it returns once no thread has attended between two looks; it rests without a clock
// while one attends all the time and does not poll, and look_at_bell() ends the rest. It looks no
// sooner than after duty_us: a rest at once would have to be ended after every short wait.
void TcpTransport::think_about_duty() {
  if (on_duty_) return;
  const bool is_called = is_called_.exchange(false);
  const auto now = Clock::now();
  if (!is_called && now - looked_at_duty_ < std::chrono::microseconds(duty_us)) return;
  looked_at_duty_ = now;
  const std::uint64_t seen = std::exchange(seen_attendances_, attendances_.load());
  if (!is_attended()) {
    is_resting_ = false;
    if (is_called || seen == seen_attendances_) on_duty_.store(true, std::memory_order_seq_cst);
    return;
  }
  if (seen != seen_attendances_ || bell_->polling != 0) return;
  is_resting_.store(true, std::memory_order_seq_cst);
  if (!is_attended()) is_resting_ = false;
}

void TcpTransport::hear() {
  constexpr std::size_t at_once = 16;
  heard_.resize(at_once * sizeof(MeetingNotice));
  const ssize_t got = ::recv(meeting_.get(), heard_.data() + heard_bytes_,
                             heard_.size() - heard_bytes_, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return heed_lost_place();
  heard_bytes_ += static_cast<std::size_t>(got);
  std::size_t done = 0;
  for (; heard_bytes_ - done >= sizeof(MeetingNotice); done += sizeof(MeetingNotice)) {
    MeetingNotice notice;
    std::memcpy(&notice, heard_.data() + done, sizeof notice);
    heed(notice);
  }
  heard_bytes_ -= done;
  std::memmove(heard_.data(), heard_.data() + done, heard_bytes_);
}

void TcpTransport::heed(const MeetingNotice& notice) {
  if (notice.kind == Kind::mismatch) {
    log(LogLevel::error,
        "LAPI: the tasks do not form one job: a second task {} of {} has appeared; start the job "
        "once under `shima run --lapi`",
        notice.task, notice.tasks);
    return lose_all(true);
  }
  if (notice.task < 0 || notice.task >= number_.tasks || notice.task == number_.task) return;
  switch (notice.kind) {
    case Kind::joined:
      if (notice.address.endpoint_count <= ServiceAddress::most_endpoints) heed_joined(notice);
      return;
    case Kind::connect:
      if (notice.task > number_.task) order_connection(notice.task);
      return;
    case Kind::left:
      return heed_left(notice);
    case Kind::lost:
      return lose(notice.task);
    default:
      return;
  }
}

void TcpTransport::heed_joined(const MeetingNotice& notice) {
  {
    const std::lock_guard hold(ordering_);
    addresses_[static_cast<std::size_t>(notice.task)] = notice.address;
  }
  peer(notice.task).shown.store(Standing::running, std::memory_order_seq_cst);
  changed();
}

void TcpTransport::heed_left(const MeetingNotice& notice) {
  const std::lock_guard hold(adopting_);  // a connection that has been accepted comes first
  peer(notice.task).meetings = notice.meetings;
  peer(notice.task).shown.store(Standing::left, std::memory_order_seq_cst);
  changed();
}

void TcpTransport::heed_lost_place() {
  log(LogLevel::error,
      "LAPI: the meeting place of the job, `shima run --lapi`, has ended; tasks without a "
      "connection cannot be reached");
  has_place_ = false;
  // Without the meeting place, only these connections show that a machine is lost.
  for (std::size_t i = 0; i < open_count_.load(); ++i) open_[i].load()->close_if_unreachable();
  lose_all(false);
}

// All other tasks, or only those without a connection.
void TcpTransport::lose_all(bool connected) {
  for (int task = 0; task < number_.tasks; ++task)
    if (task != number_.task && (connected || connection(task) == nullptr)) lose(task);
}

// What the task has sent before comes first; tick() looks for its end.
void TcpTransport::lose(int task) {
  Peer& there = peer(task);
  if (there.is_known_lost || (there.shown == Standing::left && standing(task) != Standing::lost))
    return;
  there.is_known_lost = true;
  Stream* const stream = connection(task);
  if (stream != nullptr) stream->expect_end();
  there.is_lost.store(true, std::memory_order_seq_cst);
  if (stream == nullptr || !stream->awaits_last()) return tell_loss(task);
  has_clock_ = true;
}

void TcpTransport::tell_loss(int task) {
  if (std::exchange(peer(task).is_told, true)) return;
  changed();
  events_.on_lost(task);
}

// Streams that still meet do so without threads of the program.
void TcpTransport::tick() {
  has_clock_.store(false, std::memory_order_seq_cst);  // before looking
  bool waits = false;
  for (std::size_t i = 0; i < open_count_.load(); ++i) {
    Stream& stream = *open_[i].load();
    if (stream.needs_clock()) {
      stream.tick();
      wake_sleeper();  // what this thread has taken from a fabric wakes no other
      if (stream.has_ended()) note_end(stream.task());
      if (stream.needs_clock())
        waits = true;
      else
        changed();
    }
    if (peer(stream.task()).is_known_lost && !stream.awaits_last()) tell_loss(stream.task());
  }
  if (waits) has_clock_ = true;
}

// Ends connections to machines that do not answer. The kernel itself gives up after about 15
// minutes while something is being sent; TCP_USER_TIMEOUT would also end a connection to a task
// that does not receive.
void TcpTransport::check_answers() {
  const auto now = Clock::now();
  if (now < next_check_of_answers_) return;
  next_check_of_answers_ = now + std::chrono::microseconds(check_answers_us);
  awaits_answers_.store(false, std::memory_order_seq_cst);  // before looking
  bool waits = false;
  for (std::size_t i = 0; i < open_count_.load(); ++i) {
    Stream& stream = *open_[i].load();
    const auto silent = stream.unanswered();
    waits |= silent.has_value();
    if (!silent || *silent < node_timeout()) continue;
    log(LogLevel::error, "LAPI: the machine of task {} has not answered for {} s", stream.task(),
        node_timeout().count());
    stream.abort();
    note_end(stream.task());
  }
  if (waits) awaits_answers_ = true;
}

// A task has left, but not all that it has sent has come.
void TcpTransport::lose_if_cut(int task) {
  const Stream* stream = connection(task);
  if (stream == nullptr || !stream->is_cut()) return;
  log(LogLevel::error,
      "LAPI: task {} has left the job, but the last that it has sent has not arrived; it is lost",
      task);
  lose(task);
}

// A task whose connection has ended has left or is lost; if the meeting place says neither, it
// cannot be reached.
void TcpTransport::check_ends() {
  bool is_open = false;
  const auto now = Clock::now();
  has_ends_ = false;  // note_end() may set it from now on
  for (int task = 0; task < number_.tasks; ++task) {
    Peer& there = peer(task);
    if (!there.end_seen || there.is_known_lost) continue;
    if (there.shown == Standing::left) {
      lose_if_cut(task);
      continue;
    }
    if (there.shown != Standing::running) continue;
    if (there.ended_at == Clock::time_point{}) there.ended_at = now;
    if (now - there.ended_at >= end_grace || !has_place_)
      lose(task);
    else
      is_open = true;
  }
  if (is_open) has_ends_ = true;
}

}  // namespace shima::lapi
