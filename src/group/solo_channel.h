// A channel of one member, which exchanges nothing, never waits and needs no shared memory.
#pragma once

#include <unistd.h>

#include <array>

#include "group/channel.h"
#include "group/pointer/shared_pointer.h"
#include "ipc/staging_pool.h"

namespace shima {

class SoloChannel final : public Channel {
 public:
  SoloChannel() : topology_(std::array<Member, 1>()), shared_pointer_(words_) {}

  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] const Topology& topology() const override { return topology_; }
  [[nodiscard]] NodeRanks near_ranks() const override { return topology_.ranks_on(0); }
  [[nodiscard]] int near_index() const override { return 0; }
  [[nodiscard]] std::int32_t near_pid(int) const override { return ::getpid(); }
  [[nodiscard]] Result<std::span<const std::byte>> combine(const Result<Contribution>& mine,
                                                           JoinValues) noexcept override {
    if (!mine) return std::unexpected(mine.error());
    return caught([&]() -> Result<std::span<const std::byte>> {
      value_.assign(mine->value.begin(), mine->value.end());
      message_.assign(mine->message.begin(), mine->message.end());
      keep(mine->lasting);
      return value_;
    });
  }
  [[nodiscard]] Result<SumInOrder> sum_in_order(
      const Result<std::uint64_t>& mine) noexcept override {
    if (!mine) return std::unexpected(mine.error());
    return SumInOrder{.all = *mine};
  }
  [[nodiscard]] Result<NearMessage> near_message(int) override {
    return NearMessage{message_, lasting_serial_, lasting_};
  }
  [[nodiscard]] Outcome agree_after(const Outcome& mine, WaitLength /*wait*/) noexcept override {
    return mine;
  }
  [[nodiscard]] StagingPool& staging() override { return staging_; }
  [[nodiscard]] bool can_pull() const override { return false; }
  [[nodiscard]] bool one_space() const override { return false; }
  [[nodiscard]] SharedWindows* windows() override { return nullptr; }
  [[nodiscard]] WriteRequests* write_requests() override { return nullptr; }
  [[nodiscard]] SharedPointer* shared_pointer() override { return &shared_pointer_; }
  [[nodiscard]] Messenger* messenger() override { return nullptr; }

 private:
  void keep(const LastingPart* lasting) {
    if (lasting == nullptr || lasting->serial() == 0 || lasting->serial() == lasting_serial_)
      return;
    lasting_.resize(lasting->len_bytes());
    lasting->write(lasting_);
    lasting_serial_ = lasting->serial();
  }

  Topology topology_;
  std::vector<std::byte> value_;
  std::vector<std::byte> message_;
  std::vector<std::byte> lasting_;
  std::uint64_t lasting_serial_ = 0;
  StagingPool staging_;
  SharedPointerWords words_{};
  PointerInMemory shared_pointer_;
};

}  // namespace shima
