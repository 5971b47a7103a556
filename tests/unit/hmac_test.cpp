// The published examples of SHA-256 (FIPS 180-4) and of HMAC-SHA-256 (RFC 4231).
#include "net/hmac.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace shima {
namespace {

ByteView view(const std::string& text) { return std::as_bytes(std::span<const char>(text)); }

std::string hex(const Digest& digest) {
  std::string text;
  for (const std::byte byte : digest) {
    std::array<char, 3> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x", std::to_integer<unsigned>(byte));
    text += digits.data();
  }
  return text;
}

TEST(Hmac, HashesAsPublished) {
  EXPECT_EQ(hex(sha256({})), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sha256({view("a"), view("bc")})),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha256({view("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")})),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(Hmac, AuthenticatesAsPublished) {
  EXPECT_EQ(hex(hmac_sha256(view(std::string(20, '\x0b')), {view("Hi There")})),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex(hmac_sha256(view("Jefe"), {view("what do ya want "), view("for nothing?")})),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex(hmac_sha256(view(std::string(131, '\xaa')),
                            {view("Test Using Larger Than Block-Size Key - Hash Key First")})),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Hmac, ComparesAllBytes) {
  Digest a = sha256({});
  Digest b = a;
  EXPECT_TRUE(is_equal_secretly(a, b));
  b.back() ^= std::byte{1};
  EXPECT_FALSE(is_equal_secretly(a, b));
}

}  // namespace
}  // namespace shima
