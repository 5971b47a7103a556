#include "group/node_channel.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/fault_point.h"
#include "group/agreement.h"
#include "group/outcome_words.h"

namespace shima {

Result<std::unique_ptr<NodeChannel>> NodeChannel::make(std::shared_ptr<const NodeGround> ground,
                                                       std::uint64_t key) {
  SHIMA_TRY_ASSIGN(Slot* const slot, ground->segment->enter(key));
  auto made = caught([&]() -> Result<std::unique_ptr<NodeChannel>> {
    return std::unique_ptr<NodeChannel>(new NodeChannel(ground, slot));
  });
  if (made) return made;
  const Outcome cannot{.code = made.error().code, .rank = ground->segment->index()};
  std::ignore = slot->rendezvous.arrive(
      words_of(cannot), static_cast<std::uint32_t>(ground->members.size()), ground->hooks);
  ground->segment->leave(slot);
  return made;
}

NodeChannel::NodeChannel(std::shared_ptr<const NodeGround> ground, Slot* slot)
    : ground_(std::move(ground)),
      slot_(slot),
      windows_(*ground_->segment, slot, ground_->hooks),
      requests_(*ground_->segment, slot, ground_->hooks),
      shared_pointer_(slot->shared_pointer) {
  for (auto& messages : messages_) messages.resize(ground_->members.size());
}

NodeChannel::~NodeChannel() { ground_->segment->leave(slot_); }

Result<Rendezvous::Maxima> NodeChannel::meet(Rendezvous::Maxima mine) {
  return slot_->rendezvous.arrive(mine, static_cast<std::uint32_t>(size()), ground_->hooks);
}

Status NodeChannel::put_message(std::span<const std::byte> message) {
  SHIMA_TRY(ground_->segment->open_members(slot_));
  windows_.reset();
  Mailbox& box = mailbox(rank());
  box.len_bytes = 0;
  std::byte* to = box.data.data();
  if (message.size() > Mailbox::inline_bytes) {
    if (spills_[turn_].bytes().size() < message.size()) {
      SHIMA_TRY_ASSIGN(spills_[turn_], SharedBuffer::make(message.size() * 2, "shima-message"));
    }
    box.spill = spills_[turn_].ref();
    to = spills_[turn_].bytes().data();
  }
  std::ranges::copy(message, to);
  box.len_bytes = message.size();
  return {};
}

Result<std::span<const std::byte>> NodeChannel::message_of(int index) const {
  const Mailbox& box = mailbox(index);
  if (box.len_bytes <= Mailbox::inline_bytes) return std::span(box.data).first(box.len_bytes);
  if (index == rank()) return spills_[turn_].bytes().first(box.len_bytes);
  SHIMA_TRY_ASSIGN(const auto spilled, ground_->segment->peer_buffers().get(box.spill));
  return spilled.first(box.len_bytes);
}

Result<Messages> NodeChannel::exchange(const Result<std::span<const std::byte>>& mine) noexcept {
  constexpr std::string_view doing = "exchanging requests";
  turn_ = 1 - turn_;
  // A member that cannot write its message must still reach the meeting.
  const Status put = caught([&]() -> Status {
    if (!mine) return std::unexpected(mine.error());
    return put_message(*mine);
  });
  fault_point(FaultPhase::exchange);
  SHIMA_TRY_ASSIGN(const Rendezvous::Maxima sent,
                   meet({words_of(outcome_of(*this, put)).first, mine ? mine->size() : 0}));
  SHIMA_TRY(settled(*this, outcome_of({sent.first, 0}), put, doing));
  const Status read = caught([&] { return read_messages(); });
  if (sent.second > Mailbox::inline_bytes) {
    // Long messages are in memory that must be mapped, which may fail on one member alone.
    SHIMA_TRY_ASSIGN(const Rendezvous::Maxima all, meet(words_of(outcome_of(*this, read))));
    SHIMA_TRY(settled(*this, outcome_of(all), read, doing));
  }
  return Messages(messages_[turn_]);
}

Status NodeChannel::read_messages() {
  for (int i = 0; i < size(); ++i) {
    SHIMA_TRY_ASSIGN(messages_[turn_][static_cast<std::size_t>(i)], message_of(i));
  }
  return {};
}

void NodeChannel::begin_transfer() noexcept {
  ++transfers_;
  ground_->segment->member(slot_, rank()).transfer = transfers_;
}

void NodeChannel::end_transfer() noexcept { ground_->segment->member(slot_, rank()).transfer = 0; }

void NodeChannel::quit_transfer() noexcept {
  slot_->quit.store(transfers_, std::memory_order_seq_cst);
  slot_->event.post();
}

bool NodeChannel::transfer_quit() noexcept {
  return slot_->quit.load(std::memory_order_seq_cst) == transfers_;
}

// A broken agreement ends before all members have arrived, so each member's transfer is checked.
void NodeChannel::wait_for_transfers() noexcept {
  constexpr unsigned look_again_us = 1000;
  for (int i = 0; i < size(); ++i) {
    const std::atomic<std::uint32_t>& transfer = ground_->segment->member(slot_, i).transfer;
    while (transfer == transfers_ && caught([&] { return ground_->segment->check_peer(i); }))
      ::usleep(look_again_us);
  }
}

Outcome NodeChannel::agree(const Outcome& mine) noexcept {
  const auto met = meet(words_of(mine));
  if (!met) return {.code = met.error().code, .sys_errno = met.error().sys_errno, .rank = rank()};
  return outcome_of(*met);
}

}  // namespace shima
