// Blocking data access.
#include "mpiio/access/access.h"
#include "mpiio/entry/access_table.h"
#include "mpiio/entry/entry.h"

namespace shima {
namespace {

// Part of its callers: see file/own_access.cpp.
[[gnu::always_inline]] inline int transfer(MPI_File fh, const Access& access, const Buffer& buffer,
                                           MPI_Status* status) {
  return on_file(fh, [&](OpenFile& file) -> Status {
    if (access.scope == Access::Scope::together) SHIMA_TRY(file.settle());
    SHIMA_TRY_ASSIGN(const std::uint64_t moved, carry_out(file, access, buffer));
    set_status(status, moved);
    return {};
  });
}

}  // namespace
}  // namespace shima

using namespace shima;

#define SHIMA_BLOCKING(suffix, count_type)                                                   \
  SHIMA_ACCESSES(transfer, MPI_Status, , suffix, count_type);                                \
  SHIMA_ACCESS(transfer, MPI_Status, read_ordered##suffix, reading, together, shared, void*, \
               count_type);                                                                  \
  SHIMA_ACCESS(transfer, MPI_Status, write_ordered##suffix, writing, together, shared,       \
               const void*, count_type)

SHIMA_BLOCKING(, int);
#if SHIMA_LARGE_COUNTS
SHIMA_BLOCKING(_c, MPI_Count);
#endif
