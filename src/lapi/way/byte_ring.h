// A stream of bytes from one task to another in memory that both map.
//
// The ring consists of cache lines. Each has up to 60 bytes of the stream and a mark, which says
// how many, and in which lap they were written. So the reader finds a line by its mark, and a small
// message is one line that goes from one core to the other, without a shared position. There is
// one writer and one reader at a time, so there is no lock, and a task that is killed leaves a
// prefix of its stream. The memory is zero at first.
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
  static constexpr std::size_t line_bytes = 60;  // of the stream, in a line
  static constexpr std::size_t lines = 1024;
  static constexpr std::size_t capacity_bytes = line_bytes * lines;

  // Stores as much as there is room for.
  std::size_t write(std::span<const iovec> pieces) {
    Source from(pieces);
    const std::uint64_t first = written_.load(std::memory_order_relaxed);
    const std::uint64_t wanted = (from.left_bytes() + line_bytes - 1) / line_bytes;
    if (lines - (first - known_read_) < wanted) known_read_ = read_.load(std::memory_order_acquire);
    const std::uint64_t end =
        first + std::min<std::uint64_t>(wanted, lines - (first - known_read_));
    std::size_t sent = 0;
    for (std::uint64_t at = first; at < end; ++at) {
      Line& line = line_at(at);
      const std::size_t len = from.take(line.bytes);
      // The last one before it is asked whether the reader sleeps.
      line.mark.store(mark_of(at, len),
                      at + 1 == end ? std::memory_order_seq_cst : std::memory_order_release);
      sent += len;
    }
    if (end != first) written_.store(end, std::memory_order_relaxed);
    return sent;
  }

  // Takes as much as is there.
  std::size_t read(std::span<const iovec> pieces) {
    std::uint64_t at = read_.load(std::memory_order_relaxed);
    const std::uint64_t begin = at;
    std::size_t taken = 0;
    for (const iovec& piece : pieces) {
      std::size_t done = 0;
      while (done < piece.iov_len) {
        const Line& line = line_at(at);
        const std::size_t len = len_of(line.mark.load(std::memory_order_acquire), at);
        if (len <= taken_of_line_) break;  // less: damaged by another process
        const std::size_t part = std::min(len - taken_of_line_, piece.iov_len - done);
        copy(static_cast<std::byte*>(piece.iov_base) + done, line.bytes + taken_of_line_, part);
        done += part;
        taken_of_line_ += part;
        if (taken_of_line_ < len) break;
        taken_of_line_ = 0;
        if (++at % part_lines == 0) read_.store(at, std::memory_order_seq_cst);
      }
      taken += done;
      if (done < piece.iov_len) break;
    }
    if (at != begin) read_.store(at, std::memory_order_release);
    return taken;
  }

  [[nodiscard]] bool has_data() const {
    const std::uint64_t at = read_.load(std::memory_order_relaxed);
    return len_of(line_at(at).mark.load(std::memory_order_seq_cst), at) != 0;
  }
  [[nodiscard]] bool has_room() const {
    return written_.load(std::memory_order_relaxed) - read_.load(std::memory_order_seq_cst) < lines;
  }
  // The writer asks to be woken when there is room; true if there is some already. It asks when the
  // ring is full: then the reader comes to the end of a part, where its position and the request
  // are ordered, before it has read all.
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
  static constexpr std::size_t part_lines = lines / 4;

  struct alignas(64) Line {
    std::atomic<std::uint32_t> mark;
    std::byte bytes[line_bytes];
  };

  // The bytes to write, line by line.
  class Source {
   public:
    explicit Source(std::span<const iovec> pieces) : pieces_(pieces) {
      for (const iovec& piece : pieces) left_bytes_ += piece.iov_len;
    }
    [[nodiscard]] std::size_t left_bytes() const { return left_bytes_; }
    // Fills a line; returns its length.
    std::size_t take(std::byte* line) {
      std::size_t filled = 0;
      while (filled < line_bytes && !pieces_.empty()) {
        const iovec& piece = pieces_.front();
        const std::size_t part = std::min(line_bytes - filled, piece.iov_len - done_);
        copy(line + filled, static_cast<const std::byte*>(piece.iov_base) + done_, part);
        filled += part;
        done_ += part;
        if (done_ < piece.iov_len) break;
        done_ = 0;
        pieces_ = pieces_.subspan(1);
      }
      return filled;
    }

   private:
    std::span<const iovec> pieces_;
    std::size_t done_ = 0;  // of the first
    std::size_t left_bytes_ = 0;
  };

  static void copy(std::byte* to, const std::byte* from, std::size_t len) {
    if (len == line_bytes)
      std::memcpy(to, from, line_bytes);  // a few instructions
    else if (len != 0)
      std::memcpy(to, from, len);
  }
  // The mark of a line in its lap; that of the lap before differs.
  static std::uint32_t mark_of(std::uint64_t at, std::size_t len) {
    return static_cast<std::uint32_t>((at / lines + 1) << 8 | len);
  }
  // The bytes of a line, or 0 if it has not been written in this lap.
  static std::size_t len_of(std::uint32_t mark, std::uint64_t at) {
    const std::uint32_t len = mark & 0xff;
    return (mark ^ len) == mark_of(at, 0) ? std::min<std::size_t>(len, line_bytes) : 0;
  }
  Line& line_at(std::uint64_t at) { return lines_[at % lines]; }
  [[nodiscard]] const Line& line_at(std::uint64_t at) const { return lines_[at % lines]; }

  alignas(64) std::atomic<std::uint64_t> written_{0};  // lines; used by the writer
  std::uint64_t known_read_ = 0;                       // by the writer
  alignas(64) std::atomic<std::uint64_t> read_{0};     // lines; used by the reader, and if full
  std::size_t taken_of_line_ = 0;                      // by the reader
  alignas(64) std::atomic<std::uint32_t> wants_room_{0};
  Line lines_[lines]{};
};

}  // namespace shima::lapi
