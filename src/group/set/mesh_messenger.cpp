#include "group/set/mesh_messenger.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <tuple>

#include "base/process/exact_sleeps.h"

namespace shima {
namespace {

using Kind = Mesh::Kind;

bool is_of_lane(Kind kind) { return kind < Kind::lanes_end; }

}  // namespace

std::chrono::nanoseconds MeshRest::next() {
  constexpr int yields = 20;
  constexpr auto longest = std::chrono::microseconds(500);
  if (++looks_ <= yields) return std::chrono::nanoseconds(0);
  return std::min<std::chrono::nanoseconds>(std::chrono::microseconds(10 * (looks_ - yields)),
                                            longest);
}

void MeshRest::rest() {
  const auto pause = next();
  if (pause.count() == 0) {
    std::this_thread::yield();
  } else {
    const ExactSleeps exact;
    std::this_thread::sleep_for(pause);
  }
}

Result<Messenger::Ticket> MeshMessenger::send(int to, Lane lane, MessageBuffer message) {
  SHIMA_TRY(mesh_.check());
  const std::lock_guard hold(mutex_);
  Outgoing made{.to = to};
  if (lane == Lane::request) made.request = ++requests_[to].first;
  made.number = mesh_.send(to, channel_, Mesh::kind_of(lane), std::move(message), Mesh::Keeps::yes);
  outgoing_.emplace(next_, made);
  return next_++;
}

Result<Messenger::Ticket> MeshMessenger::receive(int from, Lane lane, MessageBuffer buffer) {
  const std::lock_guard hold(mutex_);
  SHIMA_TRY(pump());
  const Route route{Mesh::kind_of(lane), from};
  Incoming& made = incoming_[next_];
  made.buffer = std::move(buffer);
  auto& waiting = unexpected_[route];
  if (waiting.empty()) {
    expected_[route].push_back(next_);
  } else {
    Mesh::Message first = std::move(waiting.front());
    waiting.pop_front();
    SHIMA_TRY(deliver(made, std::move(first)));
  }
  return next_++;
}

Result<std::optional<int>> MeshMessenger::sender(Lane lane) {
  const std::lock_guard hold(mutex_);
  SHIMA_TRY(pump());
  for (auto at = unexpected_.lower_bound({Mesh::kind_of(lane), 0});
       at != unexpected_.end() && at->first.first == Mesh::kind_of(lane); ++at)
    if (!at->second.empty()) return at->first.second;
  return std::nullopt;
}

Result<std::optional<MessageBuffer>> MeshMessenger::done(Ticket ticket) {
  const std::lock_guard hold(mutex_);
  SHIMA_TRY(pump());
  if (const auto sent = outgoing_.find(ticket); sent != outgoing_.end()) {
    const Outgoing& one = sent->second;
    const bool is_taken = one.request == 0 || requests_[one.to].second >= one.request;
    if (!is_taken) return std::nullopt;
    auto buffer = mesh_.take_back(one.to, one.number);
    if (buffer) outgoing_.erase(sent);
    return buffer;
  }
  const auto found = incoming_.find(ticket);
  if (!found->second.has_come) return std::nullopt;
  std::optional<MessageBuffer> buffer(std::move(found->second.buffer));
  incoming_.erase(found);
  return buffer;
}

Status MeshMessenger::pump() {
  mesh_.poll();
  while (auto message = mesh_.take(channel_)) sort_in(*std::move(message));
  return mesh_.check();
}

void MeshMessenger::sort_in(Mesh::Message message) {
  if (message.kind == Kind::request_taken) {
    ++requests_[message.from].second;
    return;
  }
  if (message.kind == Kind::quit) {
    quit_ = true;
    return;
  }
  const Route route{message.kind, message.from};
  auto& waiting = expected_[route];
  if (!is_of_lane(message.kind) || waiting.empty()) {
    unexpected_[route].push_back(std::move(message));
    return;
  }
  const Ticket ticket = waiting.front();
  waiting.pop_front();
  std::ignore = deliver(incoming_.at(ticket), std::move(message));
}

// The memory that came takes the place of the buffer.
Status MeshMessenger::deliver(Incoming& to, Mesh::Message message) {
  if (message.kind == Mesh::kind_of(Lane::request))
    mesh_.send(message.from, channel_, Kind::request_taken, MessageBuffer());
  if (message.bytes.bytes().size() > to.buffer.capacity_bytes())
    return fail(Code::internal, "a message of another node is longer than expected");
  to.buffer.set_len_bytes(message.bytes.bytes().size());
  std::ranges::copy(message.bytes.bytes(), to.buffer.bytes().begin());
  to.has_come = true;
  return {};
}

void MeshMessenger::quit() noexcept {
  std::ignore = caught([&]() -> Status {
    for (int node = 0; node < topology_.node_count(); ++node)
      if (node != topology_.node_of(mesh_.own()))
        mesh_.send(topology_.ranks_on(node).front(), channel_, Kind::quit, {});
    return {};
  });
}

// The loss of a member ends a transfer, too; the agreement after it reports the error.
bool MeshMessenger::somebody_quit() noexcept {
  const std::lock_guard hold(mutex_);
  return !caught([&] { return pump(); }) || quit_;
}

void MeshMessenger::drain() noexcept {
  std::ignore = caught([&]() -> Status {
    {
      const std::lock_guard hold(mutex_);
      incoming_.clear();
      expected_.clear();
    }
    for (int member = 0; member < mesh_.size(); ++member)
      if (member != mesh_.own()) tell(member, Kind::mark, {});
    for (int member = 0; member < mesh_.size(); ++member)
      if (member != mesh_.own()) SHIMA_TRY(wait_for(member, Kind::mark));
    return {};
  });
  const std::lock_guard hold(mutex_);
  std::erase_if(unexpected_, [](const auto& at) { return is_of_lane(at.first.first); });
  // Each is ahead of the mark, which has arrived.
  for (const auto& [ticket, one] : outgoing_) std::ignore = mesh_.take_back(one.to, one.number);
  outgoing_.clear();
  requests_.clear();
  quit_ = false;
  rest_.reset();
}

void MeshMessenger::tell(int to, Kind kind, std::span<const std::byte> bytes) {
  MessageBuffer message(bytes.size());
  std::ranges::copy(bytes, message.bytes().begin());
  mesh_.send(to, channel_, kind, std::move(message));
}

Result<MessageBuffer> MeshMessenger::wait_for(int from, Kind kind) {
  for (MeshRest rest;; rest.rest()) {
    const std::lock_guard hold(mutex_);
    const Status pumped = pump();
    auto& waiting = unexpected_[{kind, from}];
    if (!waiting.empty()) {
      MessageBuffer bytes = std::move(waiting.front().bytes);
      waiting.pop_front();
      return bytes;
    }
    SHIMA_TRY(pumped);
    if (mesh_.is_gone(from)) return fail(Code::peer_lost, "a member of the set has left");
  }
}

}  // namespace shima
