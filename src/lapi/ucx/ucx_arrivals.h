// The bytes of a stream that have arrived in frames, in the order in which they were sent.
//
// UCX delivers active messages in any order, so each frame has a number. Small frames are copied
// together; large ones stay in UCX's memory if it lets them. The caller holds the worker's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include "base/function_ref.h"

namespace shima::lapi {

struct UcxFrame {
  // The number of a frame without bytes, which tells `consumed` and shows that frames arrive.
  static constexpr std::uint64_t no_number = ~std::uint64_t{0};
  std::uint64_t token = 0;  // which the receiver has given the sender over the connection
  std::uint64_t number = 0;
  std::uint64_t consumed = 0;  // bytes of the other direction that the sender of this has taken
  std::uint32_t task = 0;      // sender
  std::uint32_t is_last = 0;
};

class UcxArrivals {
 public:
  struct Bytes {
    std::byte* begin = nullptr;
    std::size_t len_bytes = 0;
    bool may_stay = false;
  };
  using Release = FunctionRef<void(void*)>;

  // Returns whether the bytes stay where they are, until take() releases them.
  [[nodiscard]] bool add(const UcxFrame& frame, const Bytes& bytes) {
    if (frame.number != next_) {
      if (frame.number < next_) return false;
      const auto [early, is_new] = early_.try_emplace(frame.number, make_block(bytes));
      early->second.is_last = frame.is_last != 0;
      return is_new && early->second.stays();
    }
    ++next_;
    is_complete_ |= frame.is_last != 0;
    const bool stays = append(bytes);
    for (auto found = early_.find(next_); found != early_.end(); found = early_.find(next_)) {
      ++next_;
      is_complete_ |= found->second.is_last;
      ready_bytes_ += found->second.len;
      blocks_.push_back(std::move(found->second));
      early_.erase(found);
    }
    return stays;
  }

  // The next bytes; none if there are none. They are valid without the lock.
  [[nodiscard]] std::span<const std::byte> front() {
    while (blocks_.size() > 1 && blocks_.front().done == blocks_.front().len) blocks_.pop_front();
    if (blocks_.empty()) return {};
    const Block& block = blocks_.front();
    return {block.data() + block.done, block.len - block.done};
  }
  void take(std::size_t len_bytes, Release release) {
    Block& block = blocks_.front();
    ready_bytes_ -= len_bytes;
    block.done += len_bytes;
    if (block.done < block.len) return;
    if (block.stays()) {
      release(block.foreign);
      blocks_.pop_front();
    } else {
      block.done = block.len = 0;  // the next small frames go there
    }
  }
  [[nodiscard]] std::size_t ready_bytes() const { return ready_bytes_; }
  // Whether the last frame and all before it have come.
  [[nodiscard]] bool is_complete() const { return is_complete_; }
  void drop_all(Release release) {
    for (Block& block : blocks_)
      if (block.stays()) release(block.foreign);
    for (auto& [number, block] : early_)
      if (block.stays()) release(block.foreign);
    blocks_.clear();
    early_.clear();
  }

 private:
  static constexpr std::size_t stay_from_bytes = 2048;
  static constexpr std::size_t block_bytes = std::size_t{32} << 10;

  struct Block {
    std::unique_ptr<std::byte[]> own;
    std::byte* foreign = nullptr;
    std::size_t capacity = 0;  // of `own`
    std::size_t len = 0;
    std::size_t done = 0;
    bool is_last = false;
    [[nodiscard]] const std::byte* data() const { return foreign != nullptr ? foreign : own.get(); }
    [[nodiscard]] bool stays() const { return foreign != nullptr; }
    [[nodiscard]] std::size_t room() const { return stays() ? 0 : capacity - len; }
  };

  static Block make_block(const Bytes& bytes, std::size_t least_capacity = 0) {
    Block block;
    block.len = bytes.len_bytes;
    if (bytes.may_stay && bytes.len_bytes >= stay_from_bytes) {
      block.foreign = bytes.begin;
      return block;
    }
    block.capacity = bytes.len_bytes < least_capacity ? least_capacity : bytes.len_bytes;
    block.own = std::make_unique_for_overwrite<std::byte[]>(block.capacity);
    if (bytes.len_bytes > 0) std::memcpy(block.own.get(), bytes.begin, bytes.len_bytes);
    return block;
  }

  bool append(const Bytes& bytes) {
    if (bytes.len_bytes == 0) return false;
    ready_bytes_ += bytes.len_bytes;
    if (!blocks_.empty() && bytes.len_bytes < stay_from_bytes) {
      Block& last = blocks_.back();
      if (last.room() >= bytes.len_bytes) {
        std::memcpy(last.own.get() + last.len, bytes.begin, bytes.len_bytes);
        last.len += bytes.len_bytes;
        return false;
      }
    }
    blocks_.push_back(make_block(bytes, block_bytes));
    return blocks_.back().stays();
  }

  std::uint64_t next_ = 0;
  std::size_t ready_bytes_ = 0;
  bool is_complete_ = false;
  std::deque<Block> blocks_;
  std::map<std::uint64_t, Block> early_;
};

}  // namespace shima::lapi
