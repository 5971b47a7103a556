// Requests that a task serves on its own memory, for the ways over sockets; and their messages.
#pragma once

#include <optional>

#include "dsm/segment.h"
#include "dsm/way.h"

namespace shima::dsm {

struct Request {
  enum class Kind : std::uint32_t { read, write, write_complete, rmw, fence };
  Kind kind = Kind::fence;
  std::uint32_t code = 0;  // rmw: operation and size
  std::uint64_t offset = 0;
  std::uint64_t len_bytes = 0;
  std::array<std::uint64_t, 2> input{};

  [[nodiscard]] static Request of(std::uint64_t offset, const Rmw& rmw) {
    return {Kind::rmw, static_cast<std::uint32_t>(rmw.operation) | rmw.size_bits << 8, offset,
            rmw.size_bits / 8, rmw.input};
  }
};

struct Reply {
  std::uint64_t refused = 0;  // 1: the request; to a fence: how many writes before it
  std::uint64_t value = 0;    // rmw: the result
};

// A task's own memory, as its servers see it. Thread-safe.
class Served {
 public:
  explicit Served(const SegmentView& own) : own_(own) {}
  // The bytes that a request names; nothing if it is not permitted.
  [[nodiscard]] std::optional<std::span<std::byte>> bytes_of(const Request& request) const;
  // The result of an rmw; nothing if it is not permitted.
  [[nodiscard]] std::optional<std::uint64_t> rmw(const Request& request) const;

 private:
  SegmentView own_;
};

// The error of a request that its target has refused.
[[nodiscard]] std::unexpected<Error> refused_by(int task);

}  // namespace shima::dsm
