// A stream of bytes from one task to another in memory that both map.
//
// There is one writer and one reader at a time, so there is no lock, and a task that is killed
// leaves a prefix of its stream.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace shima::lapi {

class ByteRing {
 public:
  static constexpr std::size_t capacity_bytes = std::size_t{64} << 10;

  // Stores as much as there is room for.
  std::size_t write(std::span<const iovec> pieces) {
    std::uint64_t at = written_.load(std::memory_order_relaxed);
    std::size_t room = capacity_bytes - (at - read_.load(std::memory_order_acquire));
    const std::size_t before = room;
    for (const iovec& piece : pieces) {
      const std::size_t len = std::min(room, piece.iov_len);
      copy(at, len, [&](std::byte* ring, std::size_t done, std::size_t part) {
        std::memcpy(ring, static_cast<const std::byte*>(piece.iov_base) + done, part);
      });
      at += len;
      room -= len;
      if (room == 0) break;
    }
    if (room != before) written_.store(at, std::memory_order_seq_cst);
    return before - room;
  }

  // Takes as much as is there.
  std::size_t read(std::span<const iovec> pieces) {
    std::uint64_t at = read_.load(std::memory_order_relaxed);
    std::size_t left = written_.load(std::memory_order_acquire) - at;
    const std::size_t before = left;
    for (const iovec& piece : pieces) {
      const std::size_t len = std::min(left, piece.iov_len);
      copy(at, len, [&](const std::byte* ring, std::size_t done, std::size_t part) {
        std::memcpy(static_cast<std::byte*>(piece.iov_base) + done, ring, part);
      });
      at += len;
      left -= len;
      if (left == 0) break;
    }
    if (left != before) read_.store(at, std::memory_order_seq_cst);
    return before - left;
  }

  [[nodiscard]] bool has_data() const {
    return written_.load(std::memory_order_seq_cst) != read_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool has_room() const {
    return written_.load(std::memory_order_relaxed) - read_.load(std::memory_order_seq_cst) <
           capacity_bytes;
  }
  // The writer asks to be woken when there is room; true if there is some already.
  [[nodiscard]] bool ask_for_room() {
    wants_room_.store(1, std::memory_order_seq_cst);
    return has_room();
  }
  // Whether the writer has asked; forgets it.
  [[nodiscard]] bool take_request() {
    return wants_room_.load(std::memory_order_seq_cst) != 0 &&
           wants_room_.exchange(0, std::memory_order_seq_cst) != 0;
  }

 private:
  template <class Part>
  void copy(std::uint64_t at, std::size_t len, Part part) {
    const std::size_t start = at % capacity_bytes;
    const std::size_t first = std::min(len, capacity_bytes - start);
    if (first > 0) part(bytes_ + start, 0, first);
    if (len > first) part(bytes_, first, len - first);
  }

  alignas(64) std::atomic<std::uint64_t> written_{0};
  alignas(64) std::atomic<std::uint64_t> read_{0};
  alignas(64) std::atomic<std::uint32_t> wants_room_{0};
  alignas(64) std::byte bytes_[capacity_bytes];
};

}  // namespace shima::lapi
