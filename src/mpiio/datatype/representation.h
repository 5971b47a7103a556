// Data representations of files (MPI-4.1, section 14.5).
//
// "native" and "internal" store bytes as they are in memory and need no Representation. The others
// define the size of an element in a file, and convert between a user's buffer and the file form,
// which is the sequence of all elements. "external32" is built in; MPI_Register_datarep adds more.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <span>

#include "base/result.h"
#include "pattern/signature.h"

namespace shima {

// A buffer as the program passes it: `count` items of a type at an address.
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

  // The form of a predefined type in the file; unsupported_datarep if it has none.
  [[nodiscard]] virtual Result<Signature> element(MPI_Datatype predefined) const = 0;
  // Fills `file` from the whole buffer, whose elements are `signature`.
  [[nodiscard]] virtual Status encode(const Buffer& buffer, const Signature& signature,
                                      std::span<std::byte> file) const = 0;
  // Fills the buffer with the whole elements in `file`, which may be shorter than the file form of
  // the buffer; the other elements keep their values. May write to `file` and to `scratch`, which
  // has room for the elements in memory. Allocates nothing: it runs after the last meeting point of
  // a collective call, where an error is no longer agreed.
  [[nodiscard]] virtual Status decode(std::span<std::byte> file, const Signature& signature,
                                      const Buffer& buffer, std::span<std::byte> scratch) const = 0;
};

}  // namespace shima
