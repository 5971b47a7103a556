// The messages between the server of shared file pointers and its clients (net/wire.h).
//
// A client sends requests one at a time and gets an answer of 8 bytes for each.
#pragma once

#include <cstdint>

namespace shima {

struct PointerRequest {
  enum Operation : std::uint32_t { advance, set };

  std::uint64_t file = 0;
  std::uint32_t turn = 0;  // index of one of the file's two words
  Operation operation = advance;
  std::int64_t value = 0;
  // A repeated request is executed once: a client repeats it if the connection ended before the
  // answer. Client 0 repeats nothing.
  std::uint64_t client = 0;
  std::uint64_t serial = 0;
};

}  // namespace shima
