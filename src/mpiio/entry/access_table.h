// The calls that move data, as tables. Blocking and nonblocking calls differ in the function that
// serves them and in what they return through their last parameter.
#pragma once

#include "mpiio/access/access.h"
#include "mpiio/entry/entry.h"

namespace shima {

inline constexpr auto reading = Direction::read;
inline constexpr auto writing = Direction::write;
inline constexpr auto alone = Access::Scope::alone;
inline constexpr auto together = Access::Scope::together;
inline constexpr auto individual = Access::Pointer::individual;
inline constexpr auto shared = Access::Pointer::shared;
inline constexpr auto explicit_offset = Access::Pointer::explicit_offset;

}  // namespace shima

// One call, which serve(handle, access, buffer, result) executes. `memory` is the declaration of
// the buffer.
#define SHIMA_ACCESS(serve, Result, name, direction, scope, pointer, memory, count_type) \
  int MPI_File_##name(MPI_File fh, memory buf, count_type count, MPI_Datatype datatype,  \
                      Result* result) {                                                  \
    return serve(fh, {direction, scope, pointer, 0, __builtin_return_address(0)},        \
                 {buf, count, datatype}, result);                                        \
  }                                                                                      \
  SHIMA_EXPORT(File_##name)
#define SHIMA_ACCESS_AT(serve, Result, name, direction, scope, memory, count_type)             \
  int MPI_File_##name(MPI_File fh, MPI_Offset offset, memory buf, count_type count,            \
                      MPI_Datatype datatype, Result* result) {                                 \
    return serve(fh, {direction, scope, explicit_offset, offset, __builtin_return_address(0)}, \
                 {buf, count, datatype}, result);                                              \
  }                                                                                            \
  SHIMA_EXPORT(File_##name)

// The calls that are both blocking and nonblocking, for one type of counts.
#define SHIMA_ACCESSES(serve, Result, prefix, suffix, count_type)                                \
  SHIMA_ACCESS(serve, Result, prefix##read##suffix, reading, alone, individual, void*,           \
               count_type);                                                                      \
  SHIMA_ACCESS(serve, Result, prefix##read_all##suffix, reading, together, individual, void*,    \
               count_type);                                                                      \
  SHIMA_ACCESS(serve, Result, prefix##read_shared##suffix, reading, alone, shared, void*,        \
               count_type);                                                                      \
  SHIMA_ACCESS(serve, Result, prefix##write##suffix, writing, alone, individual, const void*,    \
               count_type);                                                                      \
  SHIMA_ACCESS(serve, Result, prefix##write_all##suffix, writing, together, individual,          \
               const void*, count_type);                                                         \
  SHIMA_ACCESS(serve, Result, prefix##write_shared##suffix, writing, alone, shared, const void*, \
               count_type);                                                                      \
  SHIMA_ACCESS_AT(serve, Result, prefix##read_at##suffix, reading, alone, void*, count_type);    \
  SHIMA_ACCESS_AT(serve, Result, prefix##read_at_all##suffix, reading, together, void*,          \
                  count_type);                                                                   \
  SHIMA_ACCESS_AT(serve, Result, prefix##write_at##suffix, writing, alone, const void*,          \
                  count_type);                                                                   \
  SHIMA_ACCESS_AT(serve, Result, prefix##write_at_all##suffix, writing, together, const void*,   \
                  count_type)
