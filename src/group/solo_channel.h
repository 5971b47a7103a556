// A channel of one member, which exchanges nothing, never waits and needs no shared memory.
#pragma once

#include <unistd.h>

#include "group/channel.h"
#include "group/pointer/shared_pointer.h"
#include "ipc/staging_pool.h"

namespace shima {

class SoloChannel final : public Channel {
 public:
  SoloChannel() : members_{{.node = 0, .pid = ::getpid(), .cores = 1}}, shared_pointer_(words_) {}

  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] const std::vector<Member>& members() const override { return members_; }
  [[nodiscard]] Result<Messages> exchange(
      const Result<std::span<const std::byte>>& mine) noexcept override {
    if (!mine) return std::unexpected(mine.error());
    turn_ = 1 - turn_;
    return caught([&]() -> Result<Messages> {
      messages_[turn_].assign(mine->begin(), mine->end());
      shown_[turn_] = messages_[turn_];
      return Messages(&shown_[turn_], 1);
    });
  }
  [[nodiscard]] Outcome agree(const Outcome& mine) noexcept override { return mine; }
  [[nodiscard]] StagingPool& staging() override { return staging_; }
  [[nodiscard]] bool can_pull() const override { return false; }
  [[nodiscard]] bool one_space() const override { return false; }
  [[nodiscard]] SharedWindows* windows() override { return nullptr; }
  [[nodiscard]] WriteRequests* write_requests() override { return nullptr; }
  [[nodiscard]] SharedPointer* shared_pointer() override { return &shared_pointer_; }
  [[nodiscard]] Messenger* messenger() override { return nullptr; }

 private:
  std::vector<Member> members_;
  std::array<std::vector<std::byte>, 2> messages_;
  std::array<std::span<const std::byte>, 2> shown_;
  std::size_t turn_ = 0;
  StagingPool staging_;
  SharedPointerWords words_{};
  PointerInMemory shared_pointer_;
};

}  // namespace shima
