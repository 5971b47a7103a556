#include "lapi/way/tcp_transport.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/log.h"

namespace shima::lapi {
namespace {

// With so many connections, a call for each costs less than asking which have data.
constexpr std::size_t few = 4;

}  // namespace

TcpTransport::TcpTransport(const TaskNumber& number)
    : number_(number),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      peers_(static_cast<std::size_t>(number.tasks)),
      open_(static_cast<std::size_t>(number.tasks)),
      addresses_(static_cast<std::size_t>(number.tasks)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      nudge_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

// A task that has left is seen to run until the last of what it has sent has been received; the
// connection to it may be about to be made. If the last does not come, it is lost.
Standing TcpTransport::standing(int task) {
  Peer& there = peer(task);
  if (there.is_lost.load(std::memory_order_seq_cst)) {
    const Stream* stream = connection(task);
    return stream != nullptr && stream->awaits_last() ? Standing::running : Standing::lost;
  }
  const Standing shown = there.shown.load(std::memory_order_seq_cst);
  if (shown != Standing::left) return shown;
  const bool connects = there.is_connecting.load(std::memory_order_seq_cst);  // before connection()
  const Stream* stream = connection(task);
  const bool sends = stream == nullptr ? connects : !stream->has_ended();
  if (sends) return Standing::running;
  return stream != nullptr && stream->is_cut() ? Standing::lost : shown;
}

void TcpTransport::give_up(int task, std::string_view what) {
  log(LogLevel::error, "LAPI: task {} {}; it is ignored from now", task, what);
  peer(task).is_broken = true;
  peer(task).is_lost = true;
  if (Stream* stream = connection(task)) stream->abort();
  const std::lock_guard hold(ordering_);
  unreachable_.push_back(task);
  kick();
}

std::size_t TcpTransport::push(int task, std::span<const iovec> pieces) {
  Stream* stream = connection(task);
  if (stream == nullptr) {
    want(task);
    return 0;
  }
  const bool is_reply = in_round_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  const bool had_room = stream->has_room();
  const std::size_t taken = stream->push(pieces, is_reply);
  await_answers();
  if (!stream->has_room()) {  // look() finds out when there is room
    if (had_room) wake_sleeper();
    return taken;
  }
  if (!stream->has_gathered()) return taken;
  has_gathered_.store(true, std::memory_order_seq_cst);
  // Off duty, the thread looks every millisecond, which is soon enough for replies.
  if (is_reply && !on_duty_ && !is_resting_) return taken;
  if (!gather_clock_.load(std::memory_order_seq_cst) && !gather_clock_.exchange(true)) kick();
  return taken;
}

bool TcpTransport::has_room(int task) {
  const Stream* stream = connection(task);
  if (stream != nullptr) return stream->has_room();
  const Peer& there = peer(task);
  return there.shown == Standing::running && !there.is_wanted;
}

std::size_t TcpTransport::pull(int task, std::span<const iovec> pieces) {
  Stream* stream = connection(task);
  if (stream == nullptr) return 0;
  const std::size_t taken = stream->pull(pieces);
  if (stream->has_ended()) note_end(task);
  return taken;
}

bool TcpTransport::has_data(int task) {
  const Stream* stream = connection(task);
  return stream != nullptr && stream->has_data() && !peer(task).is_broken;
}

Status TcpTransport::copy(int task, Direction, std::span<const Piece>, std::span<const Piece>) {
  return fail(Code::internal, fmt::format("the memory of task {} is on another node", task));
}

void TcpTransport::look() {
  const std::size_t count = open_count_.load(std::memory_order_acquire);
  if (fabric_) fabric_->progress();
  const auto look_at = [&](Stream& stream, int task) {
    if (stream.has_ended()) return note_end(task);
    stream.look();
    if (stream.has_gathered() && stream.has_room()) has_gathered_ = true;
    if (stream.has_ended()) note_end(task);
    if (stream.awaits_last() && !has_clock_.exchange(true)) kick();
  };
  if (count <= few || fabric_) {
    for (std::size_t i = 0; i < count; ++i) {
      Stream& stream = *open_[i].load(std::memory_order_acquire);
      look_at(stream, stream.task());
    }
    return;
  }
  std::array<epoll_event, 64> ready;
  const int found = ::epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), 0);
  for (int i = 0; i < found; ++i) {
    const auto task = static_cast<int>(ready[static_cast<std::size_t>(i)].data.u32);
    if (Stream* stream = connection(task)) look_at(*stream, task);
  }
}

template <class Flush>
void TcpTransport::flush_all(Flush flush) {
  if (!has_gathered_.load(std::memory_order_seq_cst)) return;
  has_gathered_.store(false, std::memory_order_seq_cst);
  const std::size_t count = open_count_.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < count; ++i) {
    Stream& stream = *open_[i].load(std::memory_order_acquire);
    if (!stream.has_gathered() || !stream.has_room()) continue;
    flush(stream);
    if (!stream.has_room())
      wake_sleeper();
    else if (stream.has_gathered())
      has_gathered_.store(true, std::memory_order_seq_cst);
  }
}

void TcpTransport::begin_round() {
  flush_all([](Stream& stream) { stream.flush_messages(); });
  look();
  in_round_.store(std::this_thread::get_id(), std::memory_order_relaxed);
}

void TcpTransport::end_round(bool program_goes_on) {
  in_round_.store({}, std::memory_order_relaxed);
  flush_all([&](Stream& stream) { program_goes_on ? stream.flush_messages() : stream.flush(); });
}

void TcpTransport::flush() {
  flush_all([](Stream& stream) { stream.flush_late(); });
}

bool TcpTransport::has_unsent() {
  const std::size_t count = open_count_.load(std::memory_order_acquire);
  return std::any_of(open_.begin(), open_.begin() + static_cast<std::ptrdiff_t>(count),
                     [&](const auto& stream) { return is_unsent(*stream.load()); });
}

// Sends what no other thread has sent meanwhile.
void TcpTransport::send_gathered() {
  const bool any = has_gathered_;
  flush();
  if (any) return;
  gather_clock_.store(false, std::memory_order_seq_cst);
  if (has_gathered_) gather_clock_ = true;
}

bool TcpTransport::has_arrived() {
  const std::size_t count = open_count_.load(std::memory_order_acquire);
  return std::any_of(open_.begin(), open_.begin() + static_cast<std::ptrdiff_t>(count),
                     [&](const auto& stream) { return has_data(stream.load()->task()); });
}

// What a fabric has brought is not seen at its descriptor any more.
bool TcpTransport::may_sleep() { return !fabric_ || (fabric_->arm() && !has_arrived()); }

// Few sockets are polled directly: the kernel then prefers to run this thread on the core of the
// sender, if they share a machine, which an epoll instance in between prevents.
void TcpTransport::sleep(std::uint32_t limit_us) {
  if (!may_sleep()) return;
  std::array<pollfd, few + 2> watched{{{nudge_.get(), POLLIN, 0}}};
  std::size_t count = open_count_.load(std::memory_order_acquire);
  if (count > few) {
    watched[1] = {epoll_.get(), POLLIN, 0};
    count = 1;
  } else {
    for (std::size_t i = 0; i < count; ++i)
      watched[i + 1] = open_[i].load(std::memory_order_acquire)->watched();
  }
  watched[++count] = {fabric_ ? fabric_->descriptor() : -1, POLLIN, 0};
  const timespec limit{limit_us / 1'000'000, static_cast<long>(limit_us % 1'000'000) * 1000};
  ::ppoll(watched.data(), count + 1, &limit, nullptr);
  std::uint64_t nudges = 0;
  if (watched[0].revents != 0) std::ignore = ::read(nudge_.get(), &nudges, sizeof nudges);
}

void TcpTransport::end_sleep() {
  has_sleeper_.store(false, std::memory_order_seq_cst);
  if (bell_->attendants.sleepers.load(std::memory_order_seq_cst) != 0) call_on_duty();
}

void TcpTransport::wake_sleeper() {
  const std::uint64_t once = 1;
  if (has_sleeper_.load(std::memory_order_seq_cst))
    std::ignore = ::write(nudge_.get(), &once, sizeof once);
}

void TcpTransport::look_at_bell() {
  if (is_resting_.load(std::memory_order_seq_cst) && is_resting_.exchange(false)) kick();
}

void TcpTransport::call_on_duty() {
  if (on_duty_.load(std::memory_order_seq_cst)) return;
  is_called_.store(true, std::memory_order_seq_cst);
  kick();
}

void TcpTransport::kick() {
  const std::uint64_t once = 1;
  std::ignore = ::write(wake_.get(), &once, sizeof once);
}

void TcpTransport::changed() {
  changes_.fetch_add(1, std::memory_order_seq_cst);
  if (bell_ == nullptr) return;
  bell_->ring_all();
  wake_sleeper();
}

// A connection has ended; the meeting place says why, or else the task cannot be reached.
void TcpTransport::note_end(int task) {
  if (peer(task).end_seen.exchange(true)) return;
  has_ends_ = true;
  changes_.fetch_add(1, std::memory_order_seq_cst);
  kick();
}

}  // namespace shima::lapi
