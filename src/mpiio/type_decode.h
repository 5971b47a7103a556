// The constructors of MPI's derived datatypes, each as a TypeMap.
#pragma once

#include <mpi.h>

#include "base/result.h"
#include "mpiio/type_map.h"

namespace shima {

// Walks the constructors of `type` down to the predefined types. `type` is valid, but need not be
// committed.
[[nodiscard]] Result<TypeMap> decode_type(MPI_Datatype type);

}  // namespace shima
