// The connection beside a stream by UCX: how two tasks agree on UCX, and how they end.
#include "lapi/ucx/ucx_api.h"

#ifdef SHIMA_HAVE_UCX
#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <cstring>
#include <thread>

#include "base/log.h"
#include "lapi/ucx/ucx_stream.h"

namespace shima::lapi {
namespace {

// What each task says first; its address in UCX follows.
struct Greeting {
  std::uint32_t major = 0;  // version of UCX
  std::uint32_t minor = 0;
  std::uint64_t token = 0;
  std::uint64_t address_bytes = 0;
};
constexpr std::size_t most_address_bytes = std::size_t{1} << 20;
constexpr std::byte agrees{1};
constexpr std::byte declines{2};
constexpr auto look_interval = std::chrono::microseconds(100);
// How long a task that leaves waits for the other's verdict.
constexpr auto verdict_limit = std::chrono::seconds(1);
// How long the first frame may take; a task on a host that is too busy to answer is not cut off by
// this, but reached by TCP.
constexpr auto first_frame_limit = std::chrono::seconds(5);

}  // namespace

UcxStream::UcxStream(UcxWorker& worker, UniqueFd socket, int epoll, int task)
    : Stream(task), worker_(worker), connection_(std::move(socket), epoll, task) {
  worker_.attach(*this);
  greet();
}

// The socket is new, and takes so little at once.
void UcxStream::tell(const void* bytes, std::size_t len_bytes) {
  const iovec piece{const_cast<void*>(bytes), len_bytes};
  if (connection_.push(std::span(&piece, 1), false) != len_bytes) connection_.abort();
  connection_.flush();
}

void UcxStream::greet() {
  if (::getrandom(&own_token_, sizeof own_token_, 0) != sizeof own_token_) connection_.abort();
  const auto address = worker_.address();
  const Greeting greeting{worker_.api().major, worker_.api().minor, own_token_, address.size()};
  std::vector<std::byte> text(sizeof greeting + address.size());
  std::memcpy(text.data(), &greeting, sizeof greeting);
  std::memcpy(text.data() + sizeof greeting, address.data(), address.size());
  tell(text.data(), text.size());
}

// Whether so many bytes have been heard.
bool UcxStream::hear(std::size_t len_bytes) {
  while (heard_.size() < len_bytes) {
    std::array<std::byte, 4096> part;
    const iovec piece{part.data(), std::min(part.size(), len_bytes - heard_.size())};
    const std::size_t got = connection_.pull(std::span(&piece, 1));
    if (got == 0) return false;
    heard_.insert(heard_.end(), part.begin(), part.begin() + static_cast<std::ptrdiff_t>(got));
  }
  return true;
}

// The other task has said where it is: whether it is in reach.
Status UcxStream::judge(std::span<const std::byte> address) {
  Greeting other;
  std::memcpy(&other, heard_.data(), sizeof other);
  other_token_ = other.token;
  const UcxApi& own = worker_.api();
  if (other.major != own.major || other.minor != own.minor)
    return fail(Code::unsupported_operation,
                fmt::format("it has UCX {}.{}, and this task {}.{}", other.major, other.minor,
                            own.major, own.minor));
  SHIMA_TRY_ASSIGN(endpoint_, worker_.connect(address, *this));
  return {};
}

void UcxStream::meet() {
  if (is(State::greeting)) hear_greeting();
  if (is(State::trying)) try_frames();
  if (is(State::deciding) && hear(1)) conclude(heard_.front() == agrees && endpoint_ != nullptr);
}

void UcxStream::hear_greeting() {
  if (!hear(sizeof(Greeting))) return;
  Greeting other;
  std::memcpy(&other, heard_.data(), sizeof other);
  if (other.address_bytes > most_address_bytes) return abort();
  if (!hear(sizeof other + other.address_bytes)) return;
  const Status judgement = judge(std::span(heard_).subspan(sizeof other));
  heard_.clear();
  if (!judgement) return decide(judgement);
  send_empty();
  try_until_ = Clock::now() + first_frame_limit;
  state_ = State::trying;
}

// UCX says that it has connected before anything has crossed, and takes frames that never arrive.
void UcxStream::try_frames() {
  if (has_heard_) return decide({});
  if (hear(1) && heard_.front() == declines)
    return decide(fail(Code::unsupported_operation, "the other task declines"));
  if (has_failed_) return decide(fail(Code::unsupported_operation, "UCX cannot reach it"));
  if (Clock::now() < try_until_) return;
  decide(fail(Code::unsupported_operation,
              fmt::format("no frame has come from it for {} s", first_frame_limit.count())));
}

void UcxStream::decide(const Status& judgement) {
  if (!judgement) {
    log(LogLevel::warn, "LAPI: data to task {} goes by TCP and not by UCX: {}", task(),
        describe(judgement.error()));
    worker_.detach(*this, std::exchange(endpoint_, nullptr));
  }
  const std::byte verdict = judgement ? agrees : declines;
  state_ = State::deciding;
  tell(&verdict, 1);
}

void UcxStream::conclude(bool agreed) {
  heard_.clear();
  if (!agreed) worker_.detach(*this, std::exchange(endpoint_, nullptr));
  state_ = agreed ? State::open : State::plain;
}

// The connection is looked at from time to time: it carries data only if UCX does not.
void UcxStream::look() {
  if (is(State::plain)) return connection_.look();
  const std::unique_lock hold(looking_, std::try_to_lock);
  if (hold) look_held();
}

void UcxStream::tick() {
  const std::unique_lock hold(looking_, std::try_to_lock);
  if (!hold || !needs_clock()) return;
  worker_.progress();
  look_held();
}

void UcxStream::look_held() {
  if (is(State::plain)) return;  // since a moment
  if (!is(State::open)) {
    connection_.look();
    meet();
    if (connection_.has_ended() && !is(State::plain)) has_ended_ = true;
    return;
  }
  const auto now = Clock::now();
  if (now < next_look_ || has_ended_) return;
  next_look_ = now + look_interval;
  look_at_connection();
}

// The caller holds looking_.
void UcxStream::look_at_connection() {
  connection_.look();
  std::byte mark{};
  const iovec piece{&mark, 1};
  if (connection_.has_data() && connection_.pull(std::span(&piece, 1)) == 1) {
    is_acknowledged_ = true;
    connection_.look();
  }
  if (has_failed_ && !is_complete_) connection_.abort();
  const auto now = Clock::now();
  if (!ends_soon_ && !connection_.has_ended()) return;
  if (last_until_ == Clock::time_point{}) last_until_ = now + last_bytes_limit;
  ends_soon_ = true;
  if (is_cut_ || (!is_complete_ && !has_failed_ && now < last_until_)) return;
  is_cut_ = !is_complete_;
  if (arrived_bytes_ == 0) note_end();
}

void UcxStream::expect_end() {
  if (is(State::open)) ends_soon_ = true;
  if (is(State::plain)) connection_.expect_end();
}

// Before this task leaves: if the other one has agreed, it expects the last frame. The caller
// holds looking_.
void UcxStream::agree_finally() {
  const auto until = Clock::now() + verdict_limit;
  while (is(State::deciding) && !connection_.has_ended() && Clock::now() < until) {
    worker_.progress();
    look_held();
    if (is(State::deciding)) std::this_thread::sleep_for(look_interval);
  }
}

}  // namespace shima::lapi
#endif
