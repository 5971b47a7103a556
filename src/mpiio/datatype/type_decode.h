// The constructors of MPI's derived datatypes, each as a TypeMap.
#pragma once

#include <mpi.h>

#include "base/result.h"
#include "mpiio/datatype/representation.h"
#include "pattern/type_map.h"

namespace shima {

// Follows the constructors of `type` down to the predefined types. `type` is valid, but need not be
// committed.
[[nodiscard]] Result<TypeMap> decode_type(MPI_Datatype type);
// The same for a file with elements of other sizes: displacements in bytes are unchanged, those in
// elements are scaled (MPI-4.1, section 14.5.1).
[[nodiscard]] Result<TypeMap> decode_type_in_file(MPI_Datatype type,
                                                  const Representation& representation);

}  // namespace shima
