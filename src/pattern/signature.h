// The elements of a datatype, and the form of each element in a file.
//
// A data representation other than native changes bytes and sizes of elements, so that data can be
// moved only if its type is known. A Signature is the sequence of a datatype's elements, as small
// as the datatype's description. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace shima {

// From memory to the file and back.
enum class Coding : std::uint8_t {
  verbatim,
  swapped,           // the other byte order
  signed_integer,    // big-endian with fewer bytes; a value that does not fit is an error
  unsigned_integer,  // the same without a sign
  long_double,       // from this machine's long double to 16 bytes of IEEE 754, big-endian
};

struct Element {
  Coding coding = Coding::verbatim;
  std::uint32_t memory_bytes = 1;  // of one component
  std::uint32_t file_bytes = 1;
  std::uint32_t components = 1;
};

class Signature {
 public:
  Signature() = default;
  explicit Signature(const Element& element);
  [[nodiscard]] static Signature repeat(Signature part, std::uint64_t count);
  [[nodiscard]] static Signature sequence(std::vector<Signature> parts);

  [[nodiscard]] std::uint64_t memory_bytes() const { return memory_bytes_ * count_; }
  [[nodiscard]] std::uint64_t file_bytes() const { return file_bytes_ * count_; }
  [[nodiscard]] std::uint64_t elements() const { return elements_ * count_; }
  // The whole elements that the first bytes of the file form hold.
  struct Part {
    std::uint64_t memory_bytes = 0;
    std::uint64_t elements = 0;
  };
  [[nodiscard]] Part part_in(std::uint64_t file_bytes) const;

  // Converts all elements, which are contiguous on both sides.
  [[nodiscard]] Status encode(std::span<const std::byte> memory, std::span<std::byte> file) const;
  // The reverse, for the whole elements that `file` holds.
  void decode(std::span<const std::byte> file, std::span<std::byte> memory) const;

 private:
  template <class Convert>
  [[nodiscard]] bool walk(const Convert& convert) const;

  Element element_;
  std::vector<Signature> parts_;  // none: the element
  std::uint64_t memory_bytes_ = 0;
  std::uint64_t file_bytes_ = 0;
  std::uint64_t elements_ = 0;
  std::uint64_t count_ = 0;
};

}  // namespace shima
