// From an MPI_Datatype to its TypeMap.
//
// MPI reports how a derived type was constructed (MPI_Type_get_envelope and get_contents). Decoding
// follows the constructors down to the predefined types and builds the TypeMap on the way up, once
// per datatype: the result is kept as an attribute of the type, for as long as the type or a holder
// of the result lives. Predefined types are cached by handle. Thread-safe.
#pragma once

#include <mpi.h>

#include <memory>

#include "base/result.h"
#include "mpiio/datatype/representation.h"
#include "pattern/type_map.h"

namespace shima {

// The TypeMap of a committed datatype; bad_type if the handle is null, not committed or too large.
[[nodiscard]] Result<std::shared_ptr<const TypeMap>> type_map_of(MPI_Datatype type);

// The same for a predefined datatype that has been asked for lately, at the cost of a load; null
// for others. Stays as long as MPI.
[[nodiscard]] const TypeMap* recent_type_map(MPI_Datatype type);

// The same for a type in a file with another data representation; null: native. Not cached.
[[nodiscard]] Result<std::shared_ptr<const TypeMap>> type_map_in_file(
    MPI_Datatype type, const Representation* representation);

// `count` elements of a type at address `buffer`: the memory side of a transfer. Allocates nothing.
[[nodiscard]] Result<Slice> memory_slice(const TypeMap& map, const void* buffer,
                                         std::int64_t count);

// A handle to the same type that the caller may keep; for a predefined type, its own handle.
// Release it with release_type().
[[nodiscard]] MPI_Datatype keep_type(MPI_Datatype type);
void release_type(MPI_Datatype type);

}  // namespace shima
