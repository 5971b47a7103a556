// Fortran entry points that take procedures.
//
// All other Fortran calls end in C calls, which are intercepted there. These must be intercepted
// earlier, because the MPIs call internal functions (Open MPI) or lose the information that the
// procedure takes its arguments by reference (MPICH). The mpi_f08 forms pass the same addresses;
// their last argument may be absent.
#ifndef SHIMA_MPI_ABI
#include <dlfcn.h>

#include <limits>
#include <string_view>

#include "mpiio/datarep/registered_datarep.h"
#include "mpiio/entry/entry.h"

namespace shima {
namespace {

using FortranConversion = void(void* buffer, MPI_Fint* type, MPI_Fint* count, void* file,
                               MPI_Offset* position, MPI_Aint* extra, MPI_Fint* error);
using FortranExtent = void(MPI_Fint* type, MPI_Aint* extent, MPI_Aint* extra, MPI_Fint* error);

void set_error(MPI_Fint* error, int code) {
  if (error != nullptr) *error = code;
}

void create_errhandler(FortranErrorFunction* function, MPI_Fint* errhandler, MPI_Fint* error) {
  set_error(error, guarded(MPI_FILE_NULL, [&]() -> Status {
              SHIMA_TRY_ASSIGN(const MPI_Errhandler made, create_error_handler(function));
              *errhandler = PMPI_Errhandler_c2f(made);
              return {};
            }));
}

#ifdef SHIMA_MPI_MPICH
// MPI_CONVERSION_FN_NULL is a procedure of the Fortran library, one per binding.
bool is_none(FortranConversion* function) {
  for (const char* name :
       {"mpi_conversion_fn_null_", "__mpi_f08_callbacks_MOD_mpi_conversion_fn_null"})
    if (reinterpret_cast<void*>(function) == ::dlsym(RTLD_DEFAULT, name)) return true;
  return function == nullptr;
}

ConversionFunction conversion(FortranConversion* function, MPI_Aint extra) {
  if (is_none(function)) return nullptr;
  return [=](void* buffer, MPI_Datatype type, MPI_Count count, void* file) {
    MPI_Fint handle = PMPI_Type_c2f(type);
    auto elements = static_cast<MPI_Fint>(count);
    MPI_Offset position = 0;
    MPI_Aint state = extra;
    MPI_Fint error = MPI_SUCCESS;
    function(buffer, &handle, &elements, file, &position, &state, &error);
    return static_cast<int>(error);
  };
}

struct FortranDatarep {
  std::string_view name;  // padded with blanks
  FortranConversion* read;
  FortranConversion* write;
  FortranExtent* extent;
  MPI_Aint extra;
};

int add(FortranDatarep datarep) {
  const std::size_t last = datarep.name.find_last_not_of(' ');
  datarep.name = datarep.name.substr(0, last == std::string_view::npos ? 0 : last + 1);
  return guarded(MPI_FILE_NULL, [&]() -> Status {
    const auto extent = [function = datarep.extent, extra = datarep.extra](MPI_Datatype type,
                                                                           MPI_Aint* bytes) {
      MPI_Fint handle = PMPI_Type_c2f(type);
      MPI_Aint state = extra;
      MPI_Fint error = MPI_SUCCESS;
      function(&handle, bytes, &state, &error);
      return static_cast<int>(error);
    };
    return register_datarep(
        datarep.name,
        {conversion(datarep.read, datarep.extra), conversion(datarep.write, datarep.extra), extent,
         static_cast<std::uint64_t>(std::numeric_limits<MPI_Fint>::max())});
  });
}
#endif

}  // namespace
}  // namespace shima

using namespace shima;

// Compilers decorate names in different ways.
#define SHIMA_FORTRAN_ERRHANDLER(name)                                               \
  extern "C" __attribute__((visibility("default"))) void name(                       \
      FortranErrorFunction* function, MPI_Fint* errhandler, MPI_Fint* error);        \
  void name(FortranErrorFunction* function, MPI_Fint* errhandler, MPI_Fint* error) { \
    create_errhandler(function, errhandler, error);                                  \
  }

SHIMA_FORTRAN_ERRHANDLER(mpi_file_create_errhandler_)
SHIMA_FORTRAN_ERRHANDLER(pmpi_file_create_errhandler_)
SHIMA_FORTRAN_ERRHANDLER(mpi_file_create_errhandler__)
SHIMA_FORTRAN_ERRHANDLER(pmpi_file_create_errhandler__)
#ifdef SHIMA_MPI_OPENMPI
SHIMA_FORTRAN_ERRHANDLER(ompi_file_create_errhandler_f)
#endif

#ifdef SHIMA_MPI_MPICH
SHIMA_FORTRAN_ERRHANDLER(mpi_file_create_errhandler_f08_)
SHIMA_FORTRAN_ERRHANDLER(pmpir_file_create_errhandler_f08_)

#define SHIMA_FORTRAN_DATAREP(entry)                                                              \
  extern "C" __attribute__((visibility("default"))) void entry(                                   \
      const char* name, FortranConversion* read, FortranConversion* write, FortranExtent* extent, \
      MPI_Aint* extra, MPI_Fint* error, std::size_t name_len);                                    \
  void entry(const char* name, FortranConversion* read, FortranConversion* write,                 \
             FortranExtent* extent, MPI_Aint* extra, MPI_Fint* error, std::size_t name_len) {     \
    set_error(error, add({{name, name_len}, read, write, extent, *extra}));                       \
  }

SHIMA_FORTRAN_DATAREP(mpi_register_datarep_)
SHIMA_FORTRAN_DATAREP(pmpi_register_datarep_)
SHIMA_FORTRAN_DATAREP(mpi_register_datarep__)
SHIMA_FORTRAN_DATAREP(pmpi_register_datarep__)
SHIMA_FORTRAN_DATAREP(mpi_register_datarep_f08_)
SHIMA_FORTRAN_DATAREP(pmpir_register_datarep_f08_)
#endif
#endif
