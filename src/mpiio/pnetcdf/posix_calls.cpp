#include "mpiio/pnetcdf/posix_calls.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <optional>
#include <string>

#include "base/log.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "store/remote/place.h"
#include "store/striped/logical_file.h"
#include "store/striped/master_store.h"
#include "store/target/paths.h"

namespace shima {
namespace {

// Ranges are added and never removed, so that callers need no lock.
std::array<CodeRange, 64> code;
std::atomic<std::size_t> ranges_of_code;

bool is_in_pnetcdf(const void* caller) {
  const auto at = reinterpret_cast<std::uintptr_t>(caller);
  const std::span known(code.data(), ranges_of_code.load(std::memory_order_acquire));
  return std::ranges::any_of(
      known, [at](const CodeRange& range) { return range.begin < at && at <= range.end; });
}

// PnetCDF's signatures are in the first 8 bytes, or for HDF5 at one of the first powers of two.
constexpr std::size_t beginning_bytes = 4096;

// The file that PnetCDF means, if it is one of Shima: striped, or on an I/O node. Up to version
// 1.12, PnetCDF cuts off what is before the first colon of a name, and so the scheme of a place.
Result<std::optional<std::string>> file_of_shima(const char* name) {
  if (name == nullptr || *name == '\0') return std::nullopt;
  SHIMA_TRY_ASSIGN(std::string path, path_meant_by(name));
  if (is_on_node(path)) return path;
  if (path.starts_with("//") && remote::parse_far_path("iod:" + path) && !exists_at(path))
    return "iod:" + path;
  SHIMA_TRY_ASSIGN(const auto master, read_openable_master(path));
  if (!master) return std::nullopt;
  return path;
}

// A file without a name, sealed, that has the first bytes of the file at `path`.
Result<UniqueFd> beginning_of(const std::string& path, int flags) {
  SHIMA_TRY_ASSIGN(auto file, LogicalFile::open({.path = path, .read = true}));
  char bytes[beginning_bytes];
  SHIMA_TRY_ASSIGN(const std::uint64_t found, file.read(FileOffset{0}, bytes, sizeof bytes));
  UniqueFd copy(::memfd_create("shima-pnetcdf", MFD_ALLOW_SEALING | MFD_CLOEXEC));
  if (!copy || ::pwrite(copy.get(), bytes, found, 0) != static_cast<ssize_t>(found) ||
      ::fcntl(copy.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK) != 0)
    return fail_errno(errno, "creating a copy of the first bytes of " + path);
  if ((flags & O_CLOEXEC) == 0) ::fcntl(copy.get(), F_SETFD, 0);
  return copy;
}

Status truncate_file(const std::string& path, off_t size) {
  SHIMA_TRY_ASSIGN(const auto master, read_openable_master(path));
  if (master) return truncate_striped(path, static_cast<std::uint64_t>(size));
  SHIMA_TRY_ASSIGN(auto file, LogicalFile::open({.path = path, .write = true}));
  SHIMA_TRY(file.truncate(FileOffset{size}));
  return file.close();
}

int failed_with(const Error& error) {
  const int known = error.sys_errno != 0               ? error.sys_errno
                    : error.code == Code::no_such_file ? ENOENT
                    : error.code == Code::file_in_use  ? EBUSY
                                                       : EIO;
  if (known != ENOENT) log(LogLevel::warn, "{}", describe(error));
  errno = known;
  return -1;
}

// What `serve(path)` returns for a file of Shima, else what `pass_on()` does.
template <class PassOn, class Serve>
int serve_or_pass_on(const void* caller, const char* name, PassOn pass_on, Serve serve) {
  if (!is_in_pnetcdf(caller)) return pass_on();
  const auto path = caught([&] { return file_of_shima(name); });
  if (!path) return failed_with(path.error());
  if (!*path) return pass_on();
  const auto served = caught([&]() -> Result<int> { return serve(**path); });
  return served ? *served : failed_with(served.error());
}

// 0 or the error, for calls that return nothing else.
Result<int> zero(const Status& done) {
  if (!done) return std::unexpected(done.error());
  return 0;
}

int open_file(const char* name, int flags, ...) {
  mode_t mode = 0;
  if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) {
    va_list more;
    va_start(more, flags);
    mode = va_arg(more, mode_t);
    va_end(more);
  }
  const auto pass_on = [&] { return ::open(name, flags, mode); };
  if ((flags & (O_ACCMODE | O_CREAT | O_TRUNC | O_PATH)) != O_RDONLY) return pass_on();
  return serve_or_pass_on(__builtin_return_address(0), name, pass_on,
                          [&](const std::string& path) -> Result<int> {
                            SHIMA_TRY_ASSIGN(auto beginning, beginning_of(path, flags));
                            return beginning.release();
                          });
}

// A striped file has the name, the kind and the permissions of its master file.
int find_file(const char* name, int mode) {
  const auto pass_on = [&] { return ::access(name, mode); };
  return serve_or_pass_on(
      __builtin_return_address(0), name, pass_on, [&](const std::string& path) -> Result<int> {
        if (!is_on_node(path)) return pass_on();
        return zero(status_of(tree_at(path).examine(path, FileTree::Links::follow)));
      });
}

int examine_file(const char* name, struct stat* facts) {
  const auto pass_on = [&] { return ::lstat(name, facts); };
  return serve_or_pass_on(
      __builtin_return_address(0), name, pass_on, [&](const std::string& path) -> Result<int> {
        if (!is_on_node(path)) return pass_on();
        SHIMA_TRY_ASSIGN(*facts, tree_at(path).examine(path, FileTree::Links::keep));
        return 0;
      });
}

int cut_file(const char* name, off_t size) {
  return serve_or_pass_on(
      __builtin_return_address(0), name, [&] { return ::truncate(name, size); },
      [&](const std::string& path) { return zero(truncate_file(path, size)); });
}

// Many programs remove an old file by this call before they create it anew by MPI. A damaged master
// file stays: without it, nothing would tell of its subfiles.
template <class PassOn>
int remove_by_program(const char* name, PassOn pass_on) {
  if (!is_only_name_of_striped(name)) return pass_on();
  const Status removed = caught([&] { return remove_file(name); });
  return removed ? 0 : failed_with(removed.error());
}

int unlink_file(const char* name) {
  const void* const caller = __builtin_return_address(0);
  const auto pass_on = [&] { return ::unlink(name); };
  if (!is_in_pnetcdf(caller)) return remove_by_program(name, pass_on);
  return serve_or_pass_on(caller, name, pass_on,
                          [&](const std::string& path) { return zero(remove_file(path)); });
}

int remove_name(const char* name) {
  return remove_by_program(name, [&] { return ::remove(name); });
}

template <class Function>
PosixCall served_by(std::string_view name, Function* function,
                    PosixCall::Callers callers = PosixCall::Callers::pnetcdf) {
  return {name, reinterpret_cast<void*>(function), callers};
}

}  // namespace

std::span<const PosixCall> served_posix_calls() {
  static_assert(sizeof(off_t) == 8);  // so the names with 64 are the same calls
  static const std::array calls{served_by("open", &open_file),
                                served_by("open64", &open_file),
                                served_by("access", &find_file),
                                served_by("lstat", &examine_file),
                                served_by("lstat64", &examine_file),
                                served_by("truncate", &cut_file),
                                served_by("truncate64", &cut_file),
                                served_by("unlink", &unlink_file, PosixCall::Callers::any),
                                served_by("remove", &remove_name, PosixCall::Callers::any)};
  return calls;
}

bool add_code_of_pnetcdf(CodeRange range) {
  const std::size_t used = ranges_of_code.load(std::memory_order_relaxed);
  const auto is_same = [&](const CodeRange& known) {
    return known.begin == range.begin && known.end == range.end;
  };
  if (std::ranges::any_of(std::span(code.data(), used), is_same)) return true;
  if (used == code.size()) return false;
  code[used] = range;
  ranges_of_code.store(used + 1, std::memory_order_release);
  return true;
}

}  // namespace shima
