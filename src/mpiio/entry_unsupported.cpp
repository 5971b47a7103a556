// Calls that are not there yet.
//
// Each is a row: it is taken over all the same, because the MPI's own file layer cannot read our
// handles, and fails with MPI_ERR_UNSUPPORTED_OPERATION and one line that says so. A call that gets
// implemented loses its row here.
#include <fmt/format.h>

#include "mpiio/entry.h"

namespace shima {
namespace {

int refuse(MPI_File handle, const char* name) {
  return guarded(handle, [&]() -> Status {
    return fail(Code::unsupported_operation, fmt::format("{} is not there yet", name));
  });
}

int refuse_request(MPI_File handle, const char* name, MPI_Request* request) {
  *request = MPI_REQUEST_NULL;
  return refuse(handle, name);
}

}  // namespace
}  // namespace shima

using namespace shima;

#define SHIMA_REFUSE(name, ...)                                                           \
  int MPI_File_##name(MPI_File fh, __VA_ARGS__) { return refuse(fh, "MPI_File_" #name); } \
  SHIMA_EXPORT(File_##name)
#define SHIMA_REFUSE_REQUEST(name, ...)                                 \
  int MPI_File_##name(MPI_File fh, __VA_ARGS__, MPI_Request* request) { \
    return refuse_request(fh, "MPI_File_" #name, request);              \
  }                                                                     \
  SHIMA_EXPORT(File_##name)

// Everything that takes a count, for one width of it.
#define SHIMA_REFUSE_COUNTED(suffix, count_type)                                                  \
  SHIMA_REFUSE_REQUEST(iread##suffix, void*, count_type, MPI_Datatype);                           \
  SHIMA_REFUSE_REQUEST(iread_all##suffix, void*, count_type, MPI_Datatype);                       \
  SHIMA_REFUSE_REQUEST(iread_at##suffix, MPI_Offset, void*, count_type, MPI_Datatype);            \
  SHIMA_REFUSE_REQUEST(iread_at_all##suffix, MPI_Offset, void*, count_type, MPI_Datatype);        \
  SHIMA_REFUSE_REQUEST(iread_shared##suffix, void*, count_type, MPI_Datatype);                    \
  SHIMA_REFUSE_REQUEST(iwrite##suffix, const void*, count_type, MPI_Datatype);                    \
  SHIMA_REFUSE_REQUEST(iwrite_all##suffix, const void*, count_type, MPI_Datatype);                \
  SHIMA_REFUSE_REQUEST(iwrite_at##suffix, MPI_Offset, const void*, count_type, MPI_Datatype);     \
  SHIMA_REFUSE_REQUEST(iwrite_at_all##suffix, MPI_Offset, const void*, count_type, MPI_Datatype); \
  SHIMA_REFUSE_REQUEST(iwrite_shared##suffix, const void*, count_type, MPI_Datatype);             \
  SHIMA_REFUSE(read_shared##suffix, void*, count_type, MPI_Datatype, MPI_Status*);                \
  SHIMA_REFUSE(write_shared##suffix, const void*, count_type, MPI_Datatype, MPI_Status*);         \
  SHIMA_REFUSE(read_ordered##suffix, void*, count_type, MPI_Datatype, MPI_Status*);               \
  SHIMA_REFUSE(write_ordered##suffix, const void*, count_type, MPI_Datatype, MPI_Status*);        \
  SHIMA_REFUSE(read_all_begin##suffix, void*, count_type, MPI_Datatype);                          \
  SHIMA_REFUSE(read_at_all_begin##suffix, MPI_Offset, void*, count_type, MPI_Datatype);           \
  SHIMA_REFUSE(read_ordered_begin##suffix, void*, count_type, MPI_Datatype);                      \
  SHIMA_REFUSE(write_all_begin##suffix, const void*, count_type, MPI_Datatype);                   \
  SHIMA_REFUSE(write_at_all_begin##suffix, MPI_Offset, const void*, count_type, MPI_Datatype);    \
  SHIMA_REFUSE(write_ordered_begin##suffix, const void*, count_type, MPI_Datatype)

SHIMA_REFUSE_COUNTED(, int);
#if SHIMA_LARGE_COUNTS
SHIMA_REFUSE_COUNTED(_c, MPI_Count);
#endif

SHIMA_REFUSE(read_all_end, void*, MPI_Status*);
SHIMA_REFUSE(read_at_all_end, void*, MPI_Status*);
SHIMA_REFUSE(read_ordered_end, void*, MPI_Status*);
SHIMA_REFUSE(write_all_end, const void*, MPI_Status*);
SHIMA_REFUSE(write_at_all_end, const void*, MPI_Status*);
SHIMA_REFUSE(write_ordered_end, const void*, MPI_Status*);
SHIMA_REFUSE(seek_shared, MPI_Offset, int);
SHIMA_REFUSE(get_position_shared, MPI_Offset*);

int MPI_Register_datarep(const char*, MPI_Datarep_conversion_function*,
                         MPI_Datarep_conversion_function*, MPI_Datarep_extent_function*, void*) {
  return refuse(MPI_FILE_NULL, "MPI_Register_datarep");
}
SHIMA_EXPORT(Register_datarep);

#if SHIMA_LARGE_COUNTS
int MPI_Register_datarep_c(const char*, MPI_Datarep_conversion_function_c*,
                           MPI_Datarep_conversion_function_c*, MPI_Datarep_extent_function*,
                           void*) {
  return refuse(MPI_FILE_NULL, "MPI_Register_datarep_c");
}
SHIMA_EXPORT(Register_datarep_c);
#endif
