// Data representations of files (MPI-4.1, section 14.5).
//
// "native" and "internal" leave bytes as they are in memory and need no Representation. The others
// say how large an element is in a file, and convert between a user's buffer and the file form: all
// elements one after the other. "external32" is built in; MPI_Register_datarep adds more.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "region/signature.h"

namespace shima {

// What a program hands over: `count` items of a type at an address.
struct Buffer {
  const void* address;
  MPI_Count count;
  MPI_Datatype type;
};

class Representation {
 public:
  Representation() = default;
  Representation(const Representation&) = delete;
  Representation& operator=(const Representation&) = delete;
  virtual ~Representation() = default;

  // How a predefined type looks in the file; unsupported_datarep if it has no form there.
  [[nodiscard]] virtual Result<Signature> element(MPI_Datatype predefined) const = 0;
  // Fills `file` from the whole buffer, whose elements are `signature`.
  [[nodiscard]] virtual Status encode(const Buffer& buffer, const Signature& signature,
                                      std::span<std::byte> file) const = 0;
  // Fills the buffer with the whole elements that `file` holds, which may be shorter than the file
  // form of the buffer; the other elements keep their values.
  [[nodiscard]] virtual Status decode(std::span<const std::byte> file, const Signature& signature,
                                      const Buffer& buffer) const = 0;
};

// Null: bytes stay as they are. unsupported_datarep if nobody has registered the name.
[[nodiscard]] Result<std::shared_ptr<const Representation>> representation_of(
    std::string_view name);
// Makes a representation known for the rest of the job; duplicate_datarep if the name is taken.
// Local, thread-safe.
[[nodiscard]] Status add_representation(
    std::string_view name, const std::shared_ptr<const Representation>& representation);

// All elements of a type.
[[nodiscard]] Result<Signature> signature_of(MPI_Datatype type,
                                             const Representation& representation);

// The items of a buffer as bytes one after the other, and back.
[[nodiscard]] Result<std::vector<std::byte>> packed(const Buffer& buffer);
[[nodiscard]] Status unpack(std::span<const std::byte> bytes, const Buffer& buffer);

}  // namespace shima
