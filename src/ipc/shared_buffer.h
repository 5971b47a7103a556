// Memory that one process creates and the others of its node map on demand.
//
// It is an anonymous file (memfd), which its peers open under /proc/PID/fd: it has no name in any
// directory, and nothing remains when its creator dies. The limit on file sizes (RLIMIT_FSIZE)
// applies to such a file too, and a file sized beyond it is a signal that kills. If the limit is
// too low, the memory is a System V segment, marked for removal at once, so that it ends with its
// last mapping.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "base/result.h"

namespace shima {

// How a peer finds a SharedBuffer; plain data, may be stored in shared memory.
struct SharedRef {
  enum class Kind : std::int32_t { none, memfd, system_v };
  std::int32_t pid = 0;
  Kind kind = Kind::none;
  std::int32_t number = -1;  // the creator's descriptor, or the segment's identifier
  std::uint64_t len_bytes = 0;
  std::uint64_t inode = 0;
};

// A mapping of `len_bytes` that is unmapped with the object.
class Mapping {
 public:
  Mapping() = default;
  Mapping(std::byte* data, std::size_t len_bytes) : bytes_(data, len_bytes) {}
  Mapping(Mapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping();
  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

// Part of a buffer.
struct BufferPart {
  std::size_t offset = 0;
  std::size_t len_bytes = 0;
};

// Aligned blocks of a mapping.
class BlockSet {
 public:
  // What the kernel, by default, maps at the first read of a byte of it, as far as there is memory;
  // a write maps one page. So a page that another process has created comes in a sixth of the time
  // (docs/measurements.md).
  static constexpr std::size_t block_bytes = std::size_t{64} * 1024;

  // Puts in the blocks of `part`; calls visit(bytes of the block) for each that was not in.
  template <class Visit>
  void put(std::span<std::byte> mapping, BufferPart part, Visit visit);

 private:
  std::vector<bool> blocks_;
};

// The creator's side. Pages that are never touched cost nothing.
class SharedBuffer {
 public:
  SharedBuffer() = default;
  [[nodiscard]] static Result<SharedBuffer> make(std::size_t len_bytes, const char* name);
  SharedBuffer(SharedBuffer&& other) noexcept;
  SharedBuffer& operator=(SharedBuffer&& other) noexcept;
  ~SharedBuffer();

  [[nodiscard]] std::span<std::byte> bytes() const { return mapping_.bytes(); }
  [[nodiscard]] const SharedRef& ref() const { return ref_; }
  // Creates the memory of the blocks of `part`, if it has not been: for peers that then map it.
  // Where the kernel cannot (before Linux 5.14), the first use does.
  [[nodiscard]] Status touch(BufferPart part);
  // Closes the descriptor; afterwards no other process can map the memory.
  void close_descriptor();

 private:
  [[nodiscard]] static Result<SharedBuffer> make_memfd(std::size_t len_bytes, const char* name);
  [[nodiscard]] static Result<SharedBuffer> make_system_v(std::size_t len_bytes);

  Mapping mapping_;
  SharedRef ref_;
  BlockSet touched_;
};

// Maps a peer's buffer; the peer keeps it open until then.
[[nodiscard]] Result<Mapping> map_shared(const SharedRef& ref);

// The peers' buffers that this process has mapped, kept until a peer names another one.
class PeerBuffers {
 public:
  // The whole buffer, of which `part` is used next. Valid until the same peer names another buffer.
  // Thread-safe.
  [[nodiscard]] Result<std::span<std::byte>> get(const SharedRef& ref, BufferPart part = {});

 private:
  std::mutex mutex_;
  struct Mapped {
    SharedRef ref;
    Mapping mapping;
    BlockSet read;
  };
  std::map<std::tuple<std::int32_t, SharedRef::Kind, std::int32_t>, Mapped>
      mapped_;  // by process, kind and number
};

}  // namespace shima
