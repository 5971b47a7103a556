// The memory that a task donates: a head, its protection table and the data, in one SharedBuffer.
//
// Tasks of the same host map it whole. A random number in its head shows that a mapping is the
// right one: a process ID and a descriptor alone could be those of another host's process.
#pragma once

#include <array>
#include <atomic>

#include "base/result.h"
#include "dsm/protection.h"
#include "ipc/shared_buffer.h"

namespace shima::dsm {

using Nonce = std::array<std::uint64_t, 2>;

// Where the parts of a segment lie.
class SegmentView {
 public:
  struct Head {
    Nonce nonce{};
    std::atomic<std::uint32_t> has_left{0};  // its task has closed the memory, or has exited
  };

  SegmentView() = default;
  SegmentView(std::byte* begin, std::uint64_t size_bytes) : begin_(begin), size_(size_bytes) {}
  [[nodiscard]] static std::size_t total_bytes(std::uint64_t size_bytes) {
    return data_offset(size_bytes) + static_cast<std::size_t>(size_bytes);
  }

  [[nodiscard]] Head& head() const { return *reinterpret_cast<Head*>(begin_); }
  [[nodiscard]] ProtectionTable table() const { return ProtectionTable(begin_ + page); }
  [[nodiscard]] std::byte* data() const { return begin_ + data_offset(size_); }
  [[nodiscard]] std::uint64_t size_bytes() const { return size_; }

 private:
  static constexpr std::size_t page = 4096;
  [[nodiscard]] static std::size_t data_offset(std::uint64_t size_bytes) {
    const std::size_t end = page + ProtectionTable::table_bytes(size_bytes);
    constexpr std::size_t alignment = std::size_t{64} << 10;  // a multiple of every page size
    return (end + alignment - 1) / alignment * alignment;
  }

  std::byte* begin_ = nullptr;
  std::uint64_t size_ = 0;
};

// What a task tells the others about its segment; plain data.
struct SegmentRef {
  std::uint64_t size_bytes = 0;
  std::uint64_t data_address = 0;  // in the owner
  Nonce nonce{};
  SharedRef buffer;
};

class Segment {
 public:
  [[nodiscard]] static Result<Segment> make(std::uint64_t size_bytes);
  [[nodiscard]] const SegmentView& view() const { return view_; }
  [[nodiscard]] SegmentRef ref() const;

 private:
  SharedBuffer buffer_;
  SegmentView view_;
};

// Another task's segment, if that task is on this host; else an empty mapping.
[[nodiscard]] Mapping map_segment(const SegmentRef& ref);

}  // namespace shima::dsm
