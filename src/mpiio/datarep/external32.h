// "external32": big-endian, IEEE 754, sizes fixed by the standard (MPI-4.1, section 14.5.2).
#pragma once

#include <memory>

#include "mpiio/datatype/representation.h"

namespace shima {

[[nodiscard]] std::shared_ptr<const Representation> external32();

}  // namespace shima
