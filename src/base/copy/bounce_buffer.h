// Memory through which a system call copies what it would copy slowly from or to the caller's.
//
// Before a call each piece of the caller's memory is exchanged for itself, or, if its distance to
// the other side is slow (distance.h), for a place in the buffer from which neither copy is slow.
// After a read, what arrived there is copied on. The buffer is small: what was just copied is in
// the processor's cache for the second copy, which costs a fifth of what it saves.
#pragma once

#include <fmt/format.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/copy/distance.h"
#include "base/direction.h"
#include "base/units.h"

namespace shima {

// Whether a call copies slowly between the caller's memory `own` and the other side's, on
// processors with slow distances.
[[nodiscard]] constexpr bool is_slow_distance(Direction direction, std::uintptr_t own,
                                              std::uintptr_t other, std::uint64_t len_bytes) {
  return direction == Direction::read ? is_slow_distance(own, other, len_bytes)
                                      : is_slow_distance(other, own, len_bytes);
}

class BounceBuffer {
 public:
  static constexpr std::size_t most_skipped_bytes = 128;  // before a piece
  static constexpr std::size_t usual_capacity_bytes = (std::size_t{64} << 10) + most_skipped_bytes;

  struct Options {
    bool avoids_slow;  // if not, no piece is exchanged
    std::size_t capacity_bytes = usual_capacity_bytes;
    // The caller's, of so many bytes, to be used instead of memory that is allocated for this
    // buffer; it outlives the buffer.
    std::byte* memory = nullptr;
  };

  BounceBuffer(Direction direction, const Options& options)
      : direction_(direction),
        avoids_slow_(options.avoids_slow),
        capacity_bytes_(options.capacity_bytes),
        bytes_(options.memory) {}
  BounceBuffer(const BounceBuffer&) = delete;
  BounceBuffer& operator=(const BounceBuffer&) = delete;
  ~BounceBuffer() = default;

  // What to give to the call in place of `piece`, which it copies from or to the address `other`,
  // of which only the place in its page matters. Less than the piece if the buffer ends; empty if
  // it is full.
  [[nodiscard]] iovec exchange(const iovec& piece, std::uintptr_t other) {
    return is_slow(piece, other) ? place(piece, other, Amount::part) : pass(piece);
  }
  // The same, but the piece itself if the buffer has no room for all of it.
  [[nodiscard]] iovec exchange_whole(const iovec& piece, std::uintptr_t other) {
    if (!is_slow(piece, other)) return pass(piece);
    const iovec placed = place(piece, other, Amount::whole);
    return placed.iov_len > 0 ? placed : pass(piece);
  }

  // To be called after the call has moved so many bytes of all that it was given; afterwards the
  // buffer is empty.
  void finish(std::uint64_t moved_bytes) {
    for (const Exchanged& one : exchanged_) {
      if (direction_ == Direction::write || moved_bytes <= one.position) break;
      copy_bytes(one.memory, one.bounced, std::min(one.len_bytes, moved_bytes - one.position));
    }
    exchanged_.clear();
    used_bytes_ = 0;
    passed_bytes_ = 0;
  }

 private:
  static constexpr std::size_t step_bytes = 64;  // longer than all slow distances

  enum class Amount : std::uint8_t { part, whole };
  struct Exchanged {
    std::byte* memory;
    std::byte* bounced;
    std::uint64_t len_bytes;
    std::uint64_t position;  // among all bytes given to the call
  };

  [[nodiscard]] bool is_slow(const iovec& piece, std::uintptr_t other) const {
    const auto own = reinterpret_cast<std::uintptr_t>(piece.iov_base);
    return avoids_slow_ && is_slow_distance(direction_, own, other, piece.iov_len);
  }

  iovec pass(const iovec& piece) {
    passed_bytes_ += piece.iov_len;
    return piece;
  }

  static_assert(most_skipped_bytes == 2 * step_bytes);
  // Of three places one step apart, each of the two copies is slow at one at most.
  [[nodiscard]] std::size_t next_place(const iovec& piece, std::uintptr_t other) const {
    const auto own = reinterpret_cast<std::uintptr_t>(piece.iov_base);
    const auto begin = reinterpret_cast<std::uintptr_t>(bytes_);
    std::size_t place = used_bytes_;
    while (is_slow_distance(direction_, begin + place, other, piece.iov_len) ||
           is_slow_distance(direction_, own, begin + place, piece.iov_len))
      place += step_bytes;
    return place;
  }

  [[nodiscard]] iovec place(const iovec& piece, std::uintptr_t other, Amount amount) {
    if (bytes_ == nullptr) {
      allocated_ = std::make_unique_for_overwrite<std::byte[]>(capacity_bytes_);
      bytes_ = allocated_.get();
    }
    const std::size_t begin = next_place(piece, other);
    const std::size_t room = begin < capacity_bytes_ ? capacity_bytes_ - begin : 0;
    const bool fits = piece.iov_len <= room;
    const std::size_t len_bytes = fits ? piece.iov_len : amount == Amount::part ? room : 0;
    if (len_bytes == 0) return {piece.iov_base, 0};
    std::byte* const bounced = bytes_ + begin;
    if (direction_ == Direction::write) copy_bytes(bounced, piece.iov_base, len_bytes);
    exchanged_.push_back(
        {static_cast<std::byte*>(piece.iov_base), bounced, len_bytes, passed_bytes_});
    passed_bytes_ += len_bytes;
    used_bytes_ = begin + len_bytes;
    return {bounced, len_bytes};
  }

  Direction direction_;
  bool avoids_slow_;
  std::size_t capacity_bytes_;
  std::byte* bytes_;
  std::unique_ptr<std::byte[]> allocated_;
  std::size_t used_bytes_ = 0;
  std::uint64_t passed_bytes_ = 0;
  static constexpr std::size_t usual_count = 8;
  fmt::basic_memory_buffer<Exchanged, usual_count> exchanged_;
};

}  // namespace shima
