#include "pattern/signature.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <tuple>
#include <utility>

namespace shima {
namespace {

static_assert(std::endian::native == std::endian::little,
              "elements in memory are assumed to be little-endian");

#if __LDBL_MANT_DIG__ == 113
using Quadruple = long double;
#else
__extension__ typedef __float128 Quadruple;
#endif
static_assert(sizeof(Quadruple) == 16);

void copy_reversed(std::byte* to, const std::byte* from, std::size_t len_bytes) {
  std::reverse_copy(from, from + len_bytes, to);
}

// The low `file_bytes` of a number; an error if the number needs more bytes.
Status narrow(const Element& element, const std::byte* memory, std::byte* file) {
  const bool is_signed = element.coding == Coding::signed_integer;
  const bool negative =
      is_signed && (memory[element.file_bytes - 1] & std::byte{0x80}) != std::byte{0};
  const std::byte rest = negative ? std::byte{0xff} : std::byte{0};
  for (std::uint32_t i = element.file_bytes; i < element.memory_bytes; ++i) {
    if (memory[i] != rest)
      return fail(Code::conversion,
                  "a number does not fit into its size in this data representation");
  }
  copy_reversed(file, memory, element.file_bytes);
  return {};
}

void widen(const Element& element, const std::byte* file, std::byte* memory) {
  const bool negative =
      element.coding == Coding::signed_integer && (file[0] & std::byte{0x80}) != std::byte{0};
  std::memset(memory, negative ? 0xff : 0, element.memory_bytes);
  copy_reversed(memory, file, element.file_bytes);
}

Status encode_one(const Element& element, const std::byte* memory, std::byte* file) {
  switch (element.coding) {
    case Coding::verbatim:
      std::memcpy(file, memory, element.memory_bytes);
      return {};
    case Coding::swapped:
      copy_reversed(file, memory, element.memory_bytes);
      return {};
    case Coding::signed_integer:
    case Coding::unsigned_integer:
      return narrow(element, memory, file);
    case Coding::long_double: {
      long double native = 0;
      std::memcpy(&native, memory, sizeof native);
      const Quadruple wide = native;
      copy_reversed(file, reinterpret_cast<const std::byte*>(&wide), sizeof wide);
      return {};
    }
  }
  std::unreachable();
}

void decode_one(const Element& element, const std::byte* file, std::byte* memory) {
  switch (element.coding) {
    case Coding::verbatim:
      std::memcpy(memory, file, element.memory_bytes);
      return;
    case Coding::swapped:
      copy_reversed(memory, file, element.memory_bytes);
      return;
    case Coding::signed_integer:
    case Coding::unsigned_integer:
      widen(element, file, memory);
      return;
    case Coding::long_double: {
      Quadruple wide = 0;
      copy_reversed(reinterpret_cast<std::byte*>(&wide), file, sizeof wide);
      const auto native = static_cast<long double>(wide);
      std::memcpy(memory, &native, sizeof native);
      return;
    }
  }
}

}  // namespace

Signature::Signature(const Element& element)
    : element_(element),
      memory_bytes_(std::uint64_t{element.memory_bytes} * element.components),
      file_bytes_(std::uint64_t{element.file_bytes} * element.components),
      elements_(1),
      count_(1) {}

Signature Signature::repeat(Signature part, std::uint64_t count) {
  part.count_ *= count;
  return part;
}

Signature Signature::sequence(std::vector<Signature> parts) {
  Signature whole;
  for (const Signature& part : parts) {
    whole.memory_bytes_ += part.memory_bytes();
    whole.file_bytes_ += part.file_bytes();
    whole.elements_ += part.elements();
  }
  whole.parts_ = std::move(parts);
  whole.count_ = whole.parts_.empty() ? 0 : 1;
  return whole;
}

Signature::Part Signature::part_in(std::uint64_t file_bytes) const {
  if (file_bytes_ == 0) return {};
  const std::uint64_t whole = std::min(file_bytes / file_bytes_, count_);
  Part all{whole * memory_bytes_, whole * elements_};
  if (whole == count_) return all;
  std::uint64_t rest = file_bytes - whole * file_bytes_;
  for (const Signature& part : parts_) {
    const std::uint64_t here = std::min(rest, part.file_bytes());
    const Part in_part = part.part_in(here);
    all.memory_bytes += in_part.memory_bytes;
    all.elements += in_part.elements;
    rest -= here;
    if (here < part.file_bytes()) break;
  }
  return all;
}

// Calls convert(element, count) for runs of equal elements until it returns false; false then.
template <class Convert>
bool Signature::walk(const Convert& convert) const {
  if (parts_.empty()) return count_ == 0 || convert(element_, count_ * element_.components);
  for (std::uint64_t i = 0; i < count_; ++i)
    for (const Signature& part : parts_)
      if (!part.walk(convert)) return false;
  return true;
}

Status Signature::encode(std::span<const std::byte> memory, std::span<std::byte> file) const {
  const std::byte* from = memory.data();
  std::byte* to = file.data();
  Status status;
  std::ignore = walk([&](const Element& element, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count && status; ++i) {
      status = encode_one(element, from, to);
      from += element.memory_bytes;
      to += element.file_bytes;
    }
    return status.has_value();
  });
  return status;
}

void Signature::decode(std::span<const std::byte> file, std::span<std::byte> memory) const {
  std::byte* to = memory.data();
  std::ignore = walk([&](const Element& element, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      // An element's components are converted together or not at all.
      const std::uint64_t left = element.components - i % element.components;
      if (file.size() < left * element.file_bytes) return false;
      decode_one(element, file.data(), to);
      file = file.subspan(element.file_bytes);
      to += element.memory_bytes;
    }
    return true;
  });
}

}  // namespace shima
