// Messages between threads, and a Messenger that uses them.
//
// The n-th receive of a pair of members gets the n-th message, in whatever order the receives are
// polled. A send ends when its receive was posted, as MPI does with long messages, so a protocol
// that relies on buffered messages does not end here either.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "group/messenger.h"

namespace shima::test {

// What one member sent to another.
struct Sent {
  std::uint64_t messages = 0;
  std::uint64_t len_bytes = 0;
};
using Traffic = std::map<std::pair<int, int>, Sent>;  // by sender and receiver

// Messages between two members in one lane keep their order.
struct Route {
  int from = 0;
  int to = 0;
  Lane lane{};
  // Those of one receiver and lane are neighbours.
  friend bool operator<(const Route& a, const Route& b) {
    return std::tuple(a.to, a.lane, a.from) < std::tuple(b.to, b.lane, b.from);
  }
};

class PostOffice {
 public:
  // Each returns the number of the message in its pair.
  std::uint64_t send(const Route& route, std::span<const std::byte> data) {
    const std::lock_guard lock(mutex_);
    Pair& pair = pairs_[route];
    pair.messages.try_emplace(pair.sent, data.begin(), data.end());
    pair.len_bytes += data.size();
    arrived_.notify_all();
    return pair.sent++;
  }
  std::uint64_t receive(const Route& route) {
    const std::lock_guard lock(mutex_);
    return pairs_[route].received++;
  }
  // A member that has sent more messages in a lane than receives were posted.
  std::optional<int> sender(int to, Lane lane) {
    const std::lock_guard lock(mutex_);
    for (auto at = pairs_.lower_bound({0, to, lane});
         at != pairs_.end() && at->first.to == to && at->first.lane == lane; ++at)
      if (at->second.sent > at->second.received) return at->first.from;
    return std::nullopt;
  }
  // Whether the receive of a message was posted.
  bool is_wanted(const Route& route, std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    return number < pairs_[route].received;
  }
  // A message, once it was sent.
  std::optional<std::vector<std::byte>> get(const Route& route, std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    auto found = pairs_[route].messages.extract(number);
    if (found.empty()) return std::nullopt;
    return std::move(found.mapped());
  }
  // Receives the next message; blocks until it was sent.
  std::vector<std::byte> wait_for_next(const Route& route) {
    std::unique_lock lock(mutex_);
    Pair& pair = pairs_[route];
    const std::uint64_t number = pair.received++;
    arrived_.wait(lock, [&] { return pair.messages.contains(number); });
    return std::move(pair.messages.extract(number).mapped());
  }
  // Drops what was sent to a member and its receives, after all senders have stopped.
  void drop(int to) {
    const std::lock_guard lock(mutex_);
    for (auto& [route, pair] : pairs_) {
      if (route.to != to) continue;
      pair.messages.clear();
      pair.received = pair.sent;
    }
  }
  // Whether each message was received, and no receive waits for one.
  bool is_empty() {
    const std::lock_guard lock(mutex_);
    return std::ranges::all_of(pairs_, [](const auto& at) {
      return at.second.messages.empty() && at.second.received == at.second.sent;
    });
  }
  // What was sent so far, in one lane or in all.
  Traffic traffic(std::optional<Lane> lane = std::nullopt) {
    const std::lock_guard lock(mutex_);
    Traffic traffic;
    for (const auto& [route, pair] : pairs_) {
      if (pair.sent == 0 || (lane && route.lane != *lane)) continue;
      Sent& sent = traffic[{route.from, route.to}];
      sent.messages += pair.sent;
      sent.len_bytes += pair.len_bytes;
    }
    return traffic;
  }

 private:
  struct Pair {
    std::map<std::uint64_t, std::vector<std::byte>> messages;  // sent, not yet taken
    std::uint64_t sent = 0;
    std::uint64_t received = 0;   // receives posted
    std::uint64_t len_bytes = 0;  // sent
  };
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<Route, Pair> pairs_;
};

class QueueMessenger final : public Messenger {
 public:
  QueueMessenger(PostOffice& office, int rank) : office_(office), rank_(rank) {}
  Result<Ticket> send(int to, Lane lane, MessageBuffer message) override {
    const Route route{rank_, to, lane};
    const std::uint64_t number = office_.send(route, message.bytes());
    pending_.emplace(next_, Pending{route, number, false, std::move(message)});
    return next_++;
  }
  Result<Ticket> receive(int from, Lane lane, MessageBuffer buffer) override {
    const Route route{from, rank_, lane};
    const std::uint64_t number = office_.receive(route);
    pending_.emplace(next_, Pending{route, number, true, std::move(buffer)});
    return next_++;
  }
  Result<std::optional<int>> sender(Lane lane) override { return office_.sender(rank_, lane); }
  Result<std::optional<MessageBuffer>> done(Ticket ticket) override {
    const auto found = pending_.find(ticket);
    Pending& pending = found->second;
    if (pending.incoming) {
      const auto message = office_.get(pending.route, pending.number);
      if (!message) return std::nullopt;
      EXPECT_LE(message->size(), pending.buffer.capacity_bytes());
      pending.buffer.set_len_bytes(message->size());
      std::ranges::copy(*message, pending.buffer.bytes().begin());
    } else if (!office_.is_wanted(pending.route, pending.number)) {
      return std::nullopt;
    }
    std::optional<MessageBuffer> message(std::move(pending.buffer));
    pending_.erase(found);
    return message;
  }
  std::chrono::nanoseconds pause() override {
    constexpr auto longest = std::chrono::microseconds(500);
    return std::exchange(pause_, std::min(pause_ * 2 + std::chrono::microseconds(1), longest));
  }
  void moved() override { pause_ = {}; }
  // Ends what is under way, after all members have stopped sending.
  void drop() {
    office_.drop(rank_);
    pending_.clear();
  }

 private:
  struct Pending {
    Route route;
    std::uint64_t number = 0;  // of the message on its route
    bool incoming = false;
    MessageBuffer buffer;
  };
  PostOffice& office_;
  int rank_;
  Ticket next_ = 1;
  std::map<Ticket, Pending> pending_;
  std::chrono::microseconds pause_{0};
};

}  // namespace shima::test
