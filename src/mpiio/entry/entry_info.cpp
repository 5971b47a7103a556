// Hints of open files.
#include "mpiio/entry/entry.h"
#include "mpiio/file/info.h"

using namespace shima;

int MPI_File_set_info(MPI_File fh, MPI_Info info) {
  return on_file(fh, [&](OpenFile& file) -> Status {
    SHIMA_TRY(file.settle());
    file.finish_all();
    return file.file().set_hints(
        caught([&]() -> Result<Hints> { return resolve(file.file().hints(), settings_of(info)); }));
  });
}
SHIMA_EXPORT(File_set_info);

int MPI_File_get_info(MPI_File fh, MPI_Info* info_used) {
  return on_file(fh, [&](OpenFile& file) -> Status {
    SHIMA_TRY_ASSIGN(*info_used, make_info(effective(file.file().hints_in_effect())));
    return {};
  });
}
SHIMA_EXPORT(File_get_info);
