// Data representations that C programs register.
#include <limits>

#include "mpiio/datarep/registered_datarep.h"
#include "mpiio/entry/entry.h"

namespace shima {
namespace {

template <class Count, class Function>
ConversionFunction conversion(Function* function, Function* none, void* extra) {
  if (function == nullptr || function == none) return nullptr;
  return [function, extra](void* buffer, MPI_Datatype type, MPI_Count count, void* file) {
    return function(buffer, type, static_cast<Count>(count), file, 0, extra);
  };
}

template <class Count>
int add(const char* name, const ConversionFunction& read, const ConversionFunction& write,
        MPI_Datarep_extent_function* extent, void* extra) {
  return guarded(MPI_FILE_NULL, [&]() -> Status {
    DatarepFunctions functions{read, write, nullptr,
                               static_cast<std::uint64_t>(std::numeric_limits<Count>::max())};
    if (extent != nullptr)
      functions.extent = [=](MPI_Datatype type, MPI_Aint* bytes) {
        return extent(type, bytes, extra);
      };
    return register_datarep(name == nullptr ? "" : name, std::move(functions));
  });
}

}  // namespace
}  // namespace shima

using namespace shima;

int MPI_Register_datarep(const char* datarep, MPI_Datarep_conversion_function* read,
                         MPI_Datarep_conversion_function* write,
                         MPI_Datarep_extent_function* extent, void* extra_state) {
  auto* const none = MPI_CONVERSION_FN_NULL;
  return add<int>(datarep, conversion<int>(read, none, extra_state),
                  conversion<int>(write, none, extra_state), extent, extra_state);
}
SHIMA_EXPORT(Register_datarep);

#if SHIMA_LARGE_COUNTS
int MPI_Register_datarep_c(const char* datarep, MPI_Datarep_conversion_function_c* read,
                           MPI_Datarep_conversion_function_c* write,
                           MPI_Datarep_extent_function* extent, void* extra_state) {
  auto* const none = MPI_CONVERSION_FN_NULL_C;
  return add<MPI_Count>(datarep, conversion<MPI_Count>(read, none, extra_state),
                        conversion<MPI_Count>(write, none, extra_state), extent, extra_state);
}
SHIMA_EXPORT(Register_datarep_c);
#endif
