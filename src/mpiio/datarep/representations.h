// The data representations known in this process, and their effect on a datatype.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "mpiio/datatype/representation.h"

namespace shima {

// Null: bytes are not converted. unsupported_datarep for an unknown name.
[[nodiscard]] Result<std::shared_ptr<const Representation>> representation_of(
    std::string_view name);
// Registers a representation until the process ends; duplicate_datarep if the name is taken.
// Local, thread-safe.
[[nodiscard]] Status add_representation(
    std::string_view name, const std::shared_ptr<const Representation>& representation);

// The elements of a type.
[[nodiscard]] Result<Signature> signature_of(MPI_Datatype type,
                                             const Representation& representation);

// Packs the items of a buffer into consecutive bytes, and back. Both allocate nothing.
[[nodiscard]] Status pack(const Buffer& buffer, std::span<std::byte> bytes);
[[nodiscard]] Status unpack(std::span<const std::byte> bytes, const Buffer& buffer);

}  // namespace shima
