// Opening and closing files, and calls on a file as a whole.
#include <fmt/format.h>

#include <array>
#include <memory>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "mpiio/comm/communicator.h"
#include "mpiio/entry/entry.h"
#include "mpiio/file/access_mode.h"
#include "mpiio/file/info.h"
#include "mpiio/mpi/private_comm.h"
#include "store/striped/master_store.h"
#include "store/target/paths.h"

namespace shima {
namespace {

// ROMIO lets a prefix name the file system. Only the known prefixes are removed, because a colon is
// also an ordinary character of a file name.
std::string_view without_prefix(std::string_view name) {
  constexpr std::array<std::string_view, 12> prefixes{
      "ufs:",   "nfs:",    "xfs:",  "lustre:", "gpfs:",    "panfs:",
      "pvfs2:", "testfs:", "daos:", "ime:",    "quobyte:", "pfs:"};
  for (const std::string_view prefix : prefixes) {
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  }
  return name;
}

Result<std::string> path_of(const char* filename) {
  const std::string_view path = filename == nullptr ? std::string_view{} : without_prefix(filename);
  if (path.empty()) return fail(Code::bad_file_name, "the file name is empty");
  return path_meant_by(std::string(path));
}

Result<OpenRequest> request_of(const char* filename, int amode, MPI_Info info) {
  OpenRequest request;
  SHIMA_TRY_ASSIGN(request.path, path_of(filename));
  SHIMA_TRY_ASSIGN(request.mode, access_mode_of(amode));
  request.hints = resolve(Hints{}, settings_of(info));
  return request;
}

void name_rank_in_log() {
  static const bool named = [] {
    if (!has_world()) return false;
    int rank = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    log_set_rank(rank);
    return true;
  }();
  static_cast<void>(named);
}

bool is_intracommunicator(MPI_Comm comm) {
  if (comm == MPI_COMM_NULL) return false;
  int inter = 0;
  PMPI_Comm_test_inter(comm, &inter);
  return inter == 0;
}

// Both pointers of a file in append mode start at its end. No rank may write before all ranks have
// read the size.
Status look_for_end(File& file, OpenFile& opened) {
  SHIMA_TRY_ASSIGN(const FileOffset size, file.size());
  if (SharedPointer* const shared = file.shared_pointer()) shared->prepare(size.value);
  opened.set_position(ViewOffset{size.value});
  return {};
}

// A file that this rank opens: all that it needs exists before all ranks agree that it is open.
class Opening {
 public:
  Opening(MPI_Comm comm, int amode) : comm_(comm), amode_(amode) {
    int size = 0;
    PMPI_Comm_size(comm, &size);
    progress_ = ProgressHold(size);
  }
  Opening(const Opening&) = delete;
  Opening& operator=(const Opening&) = delete;
  ~Opening() {
    if (handle_ != MPI_FILE_NULL) unregister_open_file(handle_).reset();
  }

  [[nodiscard]] Status prepare(File& file) {
    auto opened = std::make_unique<OpenFile>(file.mode(), comm_, amode_, progress_);
    if (file.mode().append) SHIMA_TRY(look_for_end(file, *opened));
    opened_ = opened.get();
    handle_ = register_open_file(opened);
    return {};
  }

  [[nodiscard]] MPI_File complete(std::unique_ptr<File> file) {
    SharedPointer* const shared = file->shared_pointer();
    if (file->mode().append && shared != nullptr) shared->commit();
    opened_->own(std::move(file));
    return std::exchange(handle_, MPI_FILE_NULL);
  }

 private:
  MPI_Comm comm_;
  int amode_;
  ProgressHold progress_;
  OpenFile* opened_ = nullptr;  // owned by the registry
  MPI_File handle_ = MPI_FILE_NULL;
};

Status open(MPI_Comm comm, const Result<OpenRequest>& request, int amode, MPI_File* fh) {
  Opening opening(comm, amode);
  SHIMA_TRY_ASSIGN(auto channel, make_channel(comm));
  const auto prepare = [&](File& file) { return opening.prepare(file); };
  SHIMA_TRY_ASSIGN(auto file, File::open(std::move(channel), request, prepare));
  *fh = opening.complete(std::move(file));
  return {};
}

// A size that a member may set, or the error it brings to the collective.
Result<FileOffset> checked_size(OpenFile& file, MPI_Offset size) {
  SHIMA_TRY(check_writable(file.mode()));
  SHIMA_TRY(check_not_sequential(file.mode()));
  if (size < 0) return fail(Code::bad_argument, fmt::format("file size {} is negative", size));
  return FileOffset{size};
}

}  // namespace
}  // namespace shima

using namespace shima;

int MPI_File_open(MPI_Comm comm, const char* filename, int amode, MPI_Info info, MPI_File* fh) {
  *fh = MPI_FILE_NULL;
  const CallPlace place{call::file_open, __builtin_return_address(0)};
  name_rank_in_log();
  show_rank();
  const Traced traced;
  if (!is_intracommunicator(comm)) {
    return raise_class(
        MPI_FILE_NULL, MPI_ERR_COMM,
        {Code::bad_argument, 0, "opening a file: the communicator must be an intracommunicator"});
  }
  const int result = guarded(MPI_FILE_NULL, [&] {
    const auto request = caught([&] { return request_of(filename, amode, info); });
    return open(comm, request, amode, fh);
  });
  if (traced.on()) {
    OpenFile* const file = find_open_file(*fh);
    end_trace(traced, place, file != nullptr ? file->file().trace_number() : 0,
              result != MPI_SUCCESS);
  }
  return result;
}
SHIMA_EXPORT(File_open);

int MPI_File_close(MPI_File* fh) {
  const MPI_File handle = *fh;
  const int result =
      on_file_traced(handle, {call::file_close, __builtin_return_address(0)}, [](OpenFile& file) {
        file.finish_all();
        return file.file().close();
      });
  if (unregister_open_file(handle) != nullptr) *fh = MPI_FILE_NULL;
  return result;
}
SHIMA_EXPORT(File_close);

int MPI_File_delete(const char* filename, MPI_Info) {
  name_rank_in_log();
  return guarded(MPI_FILE_NULL, [&]() -> Status {
    SHIMA_TRY_ASSIGN(const std::string path, path_of(filename));
    return remove_file(path);
  });
}
SHIMA_EXPORT(File_delete);

int MPI_File_set_size(MPI_File fh, MPI_Offset size) {
  return on_file_traced(
      fh, {call::file_set_size, __builtin_return_address(0)}, [&](OpenFile& file) -> Status {
        SHIMA_TRY(file.settle());
        return file.file().set_size(caught([&] { return checked_size(file, size); }));
      });
}
SHIMA_EXPORT(File_set_size);

int MPI_File_preallocate(MPI_File fh, MPI_Offset size) {
  return on_file_traced(
      fh, {call::file_preallocate, __builtin_return_address(0)}, [&](OpenFile& file) -> Status {
        SHIMA_TRY(file.settle());
        return file.file().preallocate(caught([&] { return checked_size(file, size); }));
      });
}
SHIMA_EXPORT(File_preallocate);

int MPI_File_get_size(MPI_File fh, MPI_Offset* size) {
  return on_file(fh, [&](OpenFile& file) -> Status {
    SHIMA_TRY_ASSIGN(const FileOffset end, file.file().size());
    *size = end.value;
    return {};
  });
}
SHIMA_EXPORT(File_get_size);

int MPI_File_get_group(MPI_File fh, MPI_Group* group) {
  return on_file(fh, [&](OpenFile& file) -> Status {
    // A union with nothing is a copy.
    PMPI_Group_union(file.group(), MPI_GROUP_EMPTY, group);
    return {};
  });
}
SHIMA_EXPORT(File_get_group);

int MPI_File_get_amode(MPI_File fh, int* amode) {
  return on_file(fh, [&](OpenFile& file) -> Status {
    *amode = file.amode();
    return {};
  });
}
SHIMA_EXPORT(File_get_amode);

int MPI_File_sync(MPI_File fh) {
  return on_file_traced(fh, {call::file_sync, __builtin_return_address(0)},
                        [](OpenFile& file) -> Status {
                          SHIMA_TRY(file.settle());
                          return file.file().sync();
                        });
}
SHIMA_EXPORT(File_sync);

int MPI_File_set_atomicity(MPI_File fh, int flag) {
  return on_file_traced(fh, {call::file_set_atomicity, __builtin_return_address(0)},
                        [&](OpenFile& file) -> Status {
                          SHIMA_TRY(file.settle());
                          file.finish_all();  // no access runs partly in each mode
                          return file.file().set_atomicity(flag != 0);
                        });
}
SHIMA_EXPORT(File_set_atomicity);

int MPI_File_get_atomicity(MPI_File fh, int* flag) {
  return on_file(fh, [&](OpenFile& file) -> Status {
    *flag = file.file().atomicity() ? 1 : 0;
    return {};
  });
}
SHIMA_EXPORT(File_get_atomicity);
