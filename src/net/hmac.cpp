#include "net/hmac.h"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace shima {
namespace {

constexpr std::size_t block_bytes = 64;

constexpr std::array<std::uint32_t, 64> round_constants{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

class Sha256 {
 public:
  void add(ByteView bytes) {
    total_bytes_ += bytes.size();
    for (const std::byte byte : bytes) put(byte);
  }

  Digest finish() {
    const std::uint64_t bits = total_bytes_ * 8;
    put(std::byte{0x80});
    while (filled_ != block_bytes - 8) put(std::byte{0});
    for (int shift = 56; shift >= 0; shift -= 8) put(static_cast<std::byte>(bits >> shift));
    Digest digest{};
    for (std::size_t i = 0; i < digest.size(); ++i)
      digest[i] = static_cast<std::byte>(state_[i / 4] >> (24 - 8 * (i % 4)));
    return digest;
  }

 private:
  void put(std::byte byte) {
    block_[filled_++] = byte;
    if (filled_ == block_bytes) compress();
  }

  void compress() {
    std::array<std::uint32_t, 64> w{};
    for (std::size_t i = 0; i < block_bytes; ++i)
      w[i / 4] = (w[i / 4] << 8) | std::to_integer<std::uint32_t>(block_[i]);
    for (std::size_t i = 16; i < w.size(); ++i) {
      const std::uint32_t s0 =
          std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
      const std::uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    auto [a, b, c, d, e, f, g, h] = state_;
    for (std::size_t i = 0; i < w.size(); ++i) {
      const std::uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
      const std::uint32_t one = h + s1 + ((e & f) ^ (~e & g)) + round_constants[i] + w[i];
      const std::uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
      const std::uint32_t two = s0 + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + one, d = c, c = b, b = a, a = one + two;
    }
    const std::array<std::uint32_t, 8> sums{a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < sums.size(); ++i) state_[i] += sums[i];
    filled_ = 0;
  }

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, block_bytes> block_{};
  std::size_t filled_ = 0;
  std::uint64_t total_bytes_ = 0;
};

}  // namespace

Digest sha256(std::initializer_list<ByteView> parts) {
  Sha256 sum;
  for (const ByteView part : parts) sum.add(part);
  return sum.finish();
}

Digest hmac_sha256(ByteView key, std::initializer_list<ByteView> parts) {
  std::array<std::byte, block_bytes> inner{};
  if (key.size() > block_bytes) {
    std::ranges::copy(sha256({key}), inner.begin());
  } else {
    std::ranges::copy(key, inner.begin());
  }
  std::array<std::byte, block_bytes> outer = inner;
  for (std::byte& byte : inner) byte ^= std::byte{0x36};
  for (std::byte& byte : outer) byte ^= std::byte{0x5c};
  Sha256 sum;
  sum.add(inner);
  for (const ByteView part : parts) sum.add(part);
  return sha256({outer, sum.finish()});
}

bool is_equal_secretly(const Digest& a, const Digest& b) {
  std::byte difference{0};
  for (std::size_t i = 0; i < a.size(); ++i) difference |= a[i] ^ b[i];
  return difference == std::byte{0};
}

}  // namespace shima
