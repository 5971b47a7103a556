#include "group/node_channel.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/fault_point.h"
#include "group/outcome_words.h"

namespace shima {

Result<std::unique_ptr<NodeChannel>> NodeChannel::make(std::shared_ptr<const NodeGround> ground,
                                                       std::uint64_t key) {
  SHIMA_TRY_ASSIGN(Slot* const slot, ground->segment->enter(key));
  return std::unique_ptr<NodeChannel>(new NodeChannel(std::move(ground), slot));
}

NodeChannel::NodeChannel(std::shared_ptr<const NodeGround> ground, Slot* slot)
    : ground_(std::move(ground)),
      slot_(slot),
      windows_(*ground_->segment, slot, ground_->hooks),
      errands_(*ground_->segment, slot, ground_->hooks),
      shared_pointer_(slot->shared_pointer) {}

NodeChannel::~NodeChannel() { ground_->segment->leave(slot_); }

Result<Rendezvous::Maxima> NodeChannel::meet(Rendezvous::Maxima mine) {
  return slot_->rendezvous.arrive(mine, static_cast<std::uint32_t>(size()), ground_->hooks);
}

Status NodeChannel::put_letter(std::span<const std::byte> letter) {
  SHIMA_TRY(ground_->segment->open_members(slot_));
  windows_.reset();
  Mailbox& box = mailbox(rank());
  box.len_bytes = 0;
  std::byte* to = box.data.data();
  if (letter.size() > Mailbox::inline_bytes) {
    if (spills_[turn_].bytes().size() < letter.size()) {
      SHIMA_TRY_ASSIGN(spills_[turn_], SharedBuffer::make(letter.size() * 2, "shima-letter"));
    }
    box.spill = spills_[turn_].ref();
    to = spills_[turn_].bytes().data();
  }
  std::ranges::copy(letter, to);
  box.len_bytes = letter.size();
  return {};
}

Result<std::span<const std::byte>> NodeChannel::letter_of(int index) const {
  const Mailbox& box = mailbox(index);
  if (box.len_bytes <= Mailbox::inline_bytes) return std::span(box.data).first(box.len_bytes);
  if (index == rank()) return spills_[turn_].bytes().first(box.len_bytes);
  SHIMA_TRY_ASSIGN(const auto spilled, ground_->segment->peer_buffers().get(box.spill));
  return spilled.first(box.len_bytes);
}

Result<std::vector<std::span<const std::byte>>> NodeChannel::exchange(
    std::span<const std::byte> mine) {
  turn_ = 1 - turn_;
  // A member that cannot write its letter still has to show up.
  const Status put = put_letter(mine);
  fault_point(FaultPhase::exchange);
  SHIMA_TRY_ASSIGN(const Rendezvous::Maxima sent, meet({put ? 0U : 1U, mine.size()}));
  SHIMA_TRY(put);
  if (sent.first != 0)
    return fail(
        Code::no_memory,
        fmt::format("exchanging requests: another {} could not send its own", member_word()));
  auto letters = read_letters();
  if (sent.second <= Mailbox::inline_bytes) return letters;
  // Long letters lie in memory that has to be mapped, which may fail on one member alone.
  SHIMA_TRY_ASSIGN(const Rendezvous::Maxima read, meet({letters ? 0U : 1U, 0}));
  if (letters && read.first != 0)
    return fail(Code::no_memory,
                fmt::format("exchanging requests: another {} could not read them", member_word()));
  return letters;
}

Result<std::vector<std::span<const std::byte>>> NodeChannel::read_letters() const {
  std::vector<std::span<const std::byte>> letters;
  letters.reserve(static_cast<std::size_t>(size()));
  for (int i = 0; i < size(); ++i) {
    SHIMA_TRY_ASSIGN(const auto letter, letter_of(i));
    letters.push_back(letter);
  }
  return letters;
}

void NodeChannel::begin_transfer() {
  ++transfers_;
  ground_->segment->member(slot_, rank()).transfer = transfers_;
}

void NodeChannel::end_transfer() { ground_->segment->member(slot_, rank()).transfer = 0; }

void NodeChannel::wait_for_transfers() {
  constexpr unsigned look_again_us = 1000;
  for (int i = 0; i < size(); ++i) {
    const std::atomic<std::uint32_t>& transfer = ground_->segment->member(slot_, i).transfer;
    while (transfer == transfers_ && ground_->segment->check_peer(i)) ::usleep(look_again_us);
  }
}

Outcome NodeChannel::agree(const Outcome& mine) {
  const auto met = meet(words_of(mine));
  if (!met) return {.code = met.error().code, .sys_errno = met.error().sys_errno, .rank = rank()};
  return outcome_of(*met);
}

}  // namespace shima
