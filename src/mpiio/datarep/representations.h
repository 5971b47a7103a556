// The data representations that are known in this process, and what they make of a datatype.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "mpiio/datatype/representation.h"

namespace shima {

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
