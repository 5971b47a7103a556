// SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104).
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>

namespace shima {

using Digest = std::array<std::byte, 32>;
using ByteView = std::span<const std::byte>;

[[nodiscard]] Digest sha256(std::initializer_list<ByteView> parts);
// Of all parts, one after the other.
[[nodiscard]] Digest hmac_sha256(ByteView key, std::initializer_list<ByteView> parts);
// In a time that does not depend on where they differ.
[[nodiscard]] bool is_equal_secretly(const Digest& a, const Digest& b);

}  // namespace shima
