// How the nodes of a file see what other nodes write.
#pragma once

#include <cstdint>

namespace shima {

enum class Caches : std::uint8_t {
  one,       // all use the cache of one kernel: a node, or a local file system
  coherent,  // at once
  apart,     // after the writer has published it and the reader looked again (see Subfile::publish)
};

}  // namespace shima
