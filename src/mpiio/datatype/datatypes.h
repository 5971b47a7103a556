// From an MPI_Datatype to its TypeMap.
//
// MPI tells how a derived type was made (MPI_Type_get_envelope and get_contents); decoding follows
// the constructors down to the predefined types and builds the TypeMap on the way up. It is done
// once a datatype: the result stays with the type as an attribute, for as long as the type or
// anybody who holds the result lives. Predefined types are remembered by handle. Thread-safe.
#pragma once

#include <mpi.h>

#include <memory>

#include "base/result.h"
#include "mpiio/datatype/representation.h"
#include "pattern/type_map.h"

namespace shima {

// The meaning of a committed datatype; bad_type if the handle is null, not committed or too large.
[[nodiscard]] Result<std::shared_ptr<const TypeMap>> type_map_of(MPI_Datatype type);

// The same for a type in a file of another data representation; null: the native one. Remembers
// nothing.
[[nodiscard]] Result<std::shared_ptr<const TypeMap>> type_map_in_file(
    MPI_Datatype type, const Representation* representation);

// `count` elements of a type at address `buffer`: the memory side of a transfer. Costs no
// allocation.
[[nodiscard]] Result<Slice> memory_slice(const TypeMap& map, const void* buffer,
                                         std::int64_t count);

// A handle to the same type that the holder may keep; predefined types are their own. Free it with
// release_type().
[[nodiscard]] MPI_Datatype keep_type(MPI_Datatype type);
void release_type(MPI_Datatype type);

}  // namespace shima
