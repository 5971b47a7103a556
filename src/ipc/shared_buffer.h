// Memory that one process makes and the others of its node map when they need it.
//
// It is an anonymous file (memfd), found by its peers under /proc/PID/fd: no name in any directory,
// nothing left behind when its maker dies.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <utility>

#include "base/result.h"

namespace shima {

// How a peer finds a SharedBuffer; plain data, may lie in shared memory.
struct SharedRef {
  std::int32_t pid = 0;
  std::int32_t fd = -1;
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

// The maker's side. Pages that are never touched cost nothing.
class SharedBuffer {
 public:
  SharedBuffer() = default;
  [[nodiscard]] static Result<SharedBuffer> make(std::size_t len_bytes, const char* name);
  SharedBuffer(SharedBuffer&& other) noexcept;
  SharedBuffer& operator=(SharedBuffer&& other) noexcept;
  ~SharedBuffer();

  [[nodiscard]] std::span<std::byte> bytes() const { return mapping_.bytes(); }
  [[nodiscard]] const SharedRef& ref() const { return ref_; }

 private:
  Mapping mapping_;
  SharedRef ref_;
};

// Maps a peer's buffer; the peer keeps it open until then.
[[nodiscard]] Result<Mapping> map_shared(const SharedRef& ref);

// The peers' buffers that this process has mapped, kept until a peer shows another one.
class PeerBuffers {
 public:
  // Valid until the same peer shows another buffer. Thread-safe.
  [[nodiscard]] Result<std::span<std::byte>> get(const SharedRef& ref);

 private:
  std::mutex mutex_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::pair<SharedRef, Mapping>>
      mapped_;  // by pid and fd
};

}  // namespace shima
