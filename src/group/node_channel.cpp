#include "group/node_channel.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/fault_point.h"
#include "group/agreement.h"
#include "group/combine_values.h"
#include "group/outcome_words.h"

namespace shima {
namespace {

WaitHooks hooks_with(const WaitHooks& hooks, NodeLink* link) {
  WaitHooks with = hooks;
  if (link != nullptr)
    with.progress = [progress = hooks.progress, link] {
      if (progress) progress();
      link->poll();
    };
  return with;
}

// Only the leader tells other nodes how a meeting ended on its own, so members near it leave it to
// the leader to notice that another has exited: it may already be meeting the other leaders.
WaitHooks meeting_hooks_with(const WaitHooks& hooks, const NodeSegment& segment, NodeLink* link) {
  WaitHooks meeting = hooks;
  if (link != nullptr && segment.index() != 0)
    meeting.peers = [&segment] { return segment.check_peer(0); };
  return meeting;
}

}  // namespace

Result<std::unique_ptr<NodeChannel>> NodeChannel::make(std::shared_ptr<const NodeGround> ground,
                                                       std::uint64_t key) {
  SHIMA_TRY_ASSIGN(Slot* const slot, ground->segment->enter(key));
  auto made = caught([&]() -> Result<std::unique_ptr<NodeChannel>> {
    return std::unique_ptr<NodeChannel>(new NodeChannel(ground, slot, nullptr));
  });
  if (made) return made;
  const Outcome cannot{.code = made.error().code, .rank = ground->segment->index()};
  std::ignore = slot->rendezvous.arrive(
      words_of(cannot), static_cast<std::uint32_t>(ground->segment->member_count()), ground->hooks);
  ground->segment->leave(slot);
  return made;
}

Result<std::unique_ptr<NodeChannel>> NodeChannel::make_near(
    std::shared_ptr<const NodeGround> ground, std::uint64_t key, NodeLink& link) {
  SHIMA_TRY_ASSIGN(Slot* const slot, ground->segment->enter(key));
  auto made = caught([&]() -> Result<std::unique_ptr<NodeChannel>> {
    return std::unique_ptr<NodeChannel>(new NodeChannel(ground, slot, &link));
  });
  if (!made) ground->segment->leave(slot);
  return made;
}

NodeChannel::NodeChannel(std::shared_ptr<const NodeGround> ground, Slot* slot, NodeLink* link)
    : ground_(std::move(ground)),
      slot_(slot),
      link_(link),
      hooks_(hooks_with(ground_->hooks, link)),
      meeting_hooks_(meeting_hooks_with(hooks_, *ground_->segment, link)),
      windows_(*ground_->segment, slot, hooks_),
      requests_(*ground_->segment, slot, hooks_),
      shared_pointer_(slot->shared_pointer) {}

NodeChannel::~NodeChannel() { ground_->segment->leave(slot_); }

Result<Rendezvous::Maxima> NodeChannel::meet(Rendezvous::Maxima mine, Joining values) {
  const auto near = static_cast<std::uint32_t>(near_count());
  if (link_ == nullptr) {
    // One member joins the values for all.
    return slot_->rendezvous.arrive(mine, near, hooks_, values.wait, [&](auto& worst) {
      if (worst.first != 0) return;
      join_values(values);
      if (values.work) (*values.work)(worst);
    });
  }
  if (near_index() == 0) return lead_meeting(mine, values);
  return slot_->rendezvous.arrive(mine, near + 1, meeting_hooks_, near_wait(values.wait));
}

// While the leader meets others, members of one scheduler group that yield do not keep the core
// from it.
WaitLength NodeChannel::near_wait(WaitLength length) const {
  return hooks_.one_group ? length : WaitLength::unknown;
}

// If a near member has exited, the other nodes must learn it in this meeting.
Result<Rendezvous::Maxima> NodeChannel::lead_meeting(Rendezvous::Maxima mine, Joining values) {
  const auto near = static_cast<std::uint32_t>(near_count());
  const auto gathered = slot_->rendezvous.gather(mine, near, hooks_);
  const Outcome lost{.code = Code::peer_lost, .rank = rank()};
  Rendezvous::Maxima here = gathered ? *gathered : words_of(lost);
  if (values.work && here.first == 0) (*values.work)(here);
  // After an error the values' memory may not be mapped.
  const auto value = here.first == 0 ? join_values(values) : std::span<std::byte>();
  const Rendezvous::Maxima all = link_->meet(here, value, values.join);
  SHIMA_TRY(status_of(gathered));
  return slot_->rendezvous.arrive(all, near + 1, hooks_);
}

Status NodeChannel::put_message(std::span<const std::byte> message) {
  SHIMA_TRY(ground_->segment->open_members(slot_));
  windows_.reset();
  Mailbox& box = mailbox(near_index());
  box.len_bytes = 0;
  std::byte* to = box.data.data();
  if (message.size() > Mailbox::inline_bytes) {
    if (spills_[turn_].bytes().size() < message.size()) {
      SHIMA_TRY_ASSIGN(spills_[turn_], SharedBuffer::make(message.size() * 2, "shima-message"));
    }
    box.spill = spills_[turn_].ref();
    to = spills_[turn_].bytes().data();
  }
  if (!message.empty()) std::memcpy(to, message.data(), message.size());
  box.len_bytes = message.size();
  return {};
}

// No member reads this one's lasting part any more: a transfer in which it was read has ended.
Status NodeChannel::put_lasting(const LastingPart* part) {
  LastingBox& box = ground_->segment->member(slot_, near_index()).lasting;
  const std::uint64_t serial = part == nullptr ? 0 : part->serial();
  box.serial = serial;  // the slot may have been another file's
  if (serial == 0 || serial == lasting_serial_) return {};
  lasting_serial_ = 0;
  const std::size_t len_bytes = part->len_bytes();
  if (lasting_.bytes().size() < len_bytes) {
    SHIMA_TRY_ASSIGN(lasting_, SharedBuffer::make(len_bytes, "shima-message"));
  }
  part->write(lasting_.bytes().first(len_bytes));
  box.memory = lasting_.ref();
  box.len_bytes = len_bytes;
  lasting_serial_ = serial;
  return {};
}

Result<NearMessage> NodeChannel::near_message(int index) {
  SHIMA_TRY_ASSIGN(const auto bytes, message_of(index));
  const LastingBox& box = ground_->segment->member(slot_, index).lasting;
  if (box.serial == 0) return NearMessage{bytes, 0, {}};
  if (index == near_index())
    return NearMessage{bytes, box.serial, lasting_.bytes().first(box.len_bytes)};
  SHIMA_TRY_ASSIGN(const auto lasting, ground_->segment->peer_buffers().get(box.memory));
  return NearMessage{bytes, box.serial, lasting.first(box.len_bytes)};
}

Result<std::span<const std::byte>> NodeChannel::message_of(int index) const {
  const Mailbox& box = mailbox(index);
  if (box.len_bytes <= Mailbox::inline_bytes) return std::span(box.data).first(box.len_bytes);
  if (index == near_index()) return spills_[turn_].bytes().first(box.len_bytes);
  SHIMA_TRY_ASSIGN(const auto spilled, ground_->segment->peer_buffers().get(box.spill));
  return spilled.first(box.len_bytes);
}

// The messages are short: reading them cannot fail.
Result<SumInOrder> NodeChannel::sum_in_order(const Result<std::uint64_t>& mine) noexcept {
  const auto brought =
      mine ? Result<Contribution>({.value = bytes_of(*mine), .message = bytes_of(*mine)})
           : std::unexpected(mine.error());
  SHIMA_TRY_ASSIGN(const auto all, combine(brought, join_bytes<add_up, std::uint64_t>));
  SumInOrder sum{.all = value_in<std::uint64_t>(all)};
  const NodeRanks ranks = near_ranks();
  for (int i = 0; i < near_count(); ++i) {
    if (ranks[static_cast<std::size_t>(i)] >= rank()) continue;
    SHIMA_TRY_ASSIGN(const auto message, message_of(i));
    sum.before += value_in<std::uint64_t>(message);
  }
  return sum;
}

Result<std::span<const std::byte>> NodeChannel::combine(const Result<Contribution>& mine,
                                                        JoinValues join) noexcept {
  turn_ = 1 - turn_;
  const Status put = caught([&]() -> Status {
    SHIMA_TRY(status_of(mine));
    SHIMA_TRY(put_message(mine->message));
    SHIMA_TRY(put_lasting(mine->lasting));
    std::ranges::copy(mine->value, value_of(near_index(), mine->value.size()).begin());
    return {};
  });
  fault_point(FaultPhase::exchange);
  Status worked;
  const auto work = [&](Rendezvous::Maxima& all) {
    if (all.second == 0 || !mine->work) return;
    worked = caught([&] { return (*mine->work)(); });
    all.first = words_of(outcome_of(*this, worked)).first;
  };
  // All members that have a value have one of the same length.
  const std::size_t len_bytes = mine ? mine->value.size() : 0;
  const std::uint64_t needs_work = mine && mine->needs_work ? 1 : 0;
  const WaitLength wait = mine ? mine->wait : WaitLength::unknown;
  SHIMA_TRY_ASSIGN(
      const Rendezvous::Maxima all,
      meet({words_of(outcome_of(*this, put)).first, needs_work}, {join, len_bytes, work, wait}));
  SHIMA_TRY(settled(*this, outcome_of({all.first, 0}), worked ? put : worked, "a collective call"));
  return std::span<const std::byte>(value_of(0, len_bytes));
}

std::span<std::byte> NodeChannel::join_values(const Joining& values) {
  if (values.join == nullptr) return {};
  const auto joined = value_of(0, values.len_bytes);
  for (int i = 1; i < near_count(); ++i) values.join(joined, value_of(i, values.len_bytes));
  return joined;
}

// If the memory of the members cannot be mapped, the meeting that follows ends in that error.
void NodeChannel::begin_transfer() noexcept {
  ++transfers_;
  if (!caught([&] { return ground_->segment->open_members(slot_); })) return;
  ground_->segment->member(slot_, near_index()).transfer = transfers_;
}

void NodeChannel::end_transfer() noexcept {
  if (!ground_->segment->has_members(slot_)) return;
  ground_->segment->member(slot_, near_index()).transfer = 0;
}

void NodeChannel::quit_transfer() noexcept {
  slot_->quit.store(transfers_, std::memory_order_seq_cst);
  slot_->event.post();
}

bool NodeChannel::transfer_quit() noexcept {
  return slot_->quit.load(std::memory_order_seq_cst) == transfers_;
}

// A broken agreement ends before all members have arrived, so each member's transfer is checked.
void NodeChannel::wait_for_transfers() noexcept {
  if (!ground_->segment->has_members(slot_)) return;
  constexpr unsigned look_again_us = 1000;
  for (int i = 0; i < near_count(); ++i) {
    const std::atomic<std::uint32_t>& transfer = ground_->segment->member(slot_, i).transfer;
    while (transfer == transfers_ && caught([&] { return ground_->segment->check_peer(i); }))
      ::usleep(look_again_us);
  }
}

Outcome NodeChannel::agree_after(const Outcome& mine, WaitLength wait) noexcept {
  const auto met = meet(words_of(mine), {.wait = wait});
  if (!met) return {.code = met.error().code, .sys_errno = met.error().sys_errno, .rank = rank()};
  return outcome_of(*met);
}

}  // namespace shima
