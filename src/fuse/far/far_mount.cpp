#include "fuse/far/far_mount.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fuse3/fuse.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "fuse/far/far_files.h"
#include "fuse/tree/errors.h"
#include "store/striped/master_store.h"
#include "store/target/paths.h"

namespace shima::fuse {
namespace {

// NOLINTNEXTLINE(bugprone-invalid-enum-default-initialization): libfuse has no name for it
constexpr auto no_flags = static_cast<fuse_fill_dir_flags>(0);

const MountOptions& options_of_mount() {
  return *static_cast<const MountOptions*>(fuse_get_context()->private_data);
}

std::string far_path(const char* path) {
  const std::string_view below(path);
  return options_of_mount().directory + (below == "/" ? "" : std::string(below));
}

std::string_view last_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// The negative errno of `body`, which gets the place of a path that is not Shima's own. Errors with
// a message indicate a problem of the mount, not of the request, and are logged, except for what a
// user may cause.
template <class Body>
int answer_at(const char* path, Body body) {
  if (is_hidden(last_name(path))) return -ENOENT;
  const Status status = caught([&]() -> Status { return body(far_path(path)); });
  if (status) return 0;
  const int code = errno_of(status.error());
  if (code == EIO) log(LogLevel::warn, "{}", describe(status.error()));
  return -code;
}

FarHandle& handle_in(const fuse_file_info* info) { return *reinterpret_cast<FarHandle*>(info->fh); }

template <class Body>
int answer_in(const fuse_file_info* info, Body body) {
  const Status status = caught([&]() -> Status { return body(handle_in(info)); });
  if (status) return 0;
  log(LogLevel::warn, "{}", describe(status.error()));
  return -errno_of(status.error());
}

int get_attributes(const char* path, struct stat* facts, fuse_file_info*) {
  return answer_at(path, [&](const std::string& place) -> Status {
    SHIMA_TRY_ASSIGN(*facts, far_attributes(place));
    return {};
  });
}

int read_directory(const char* path, void* buffer, fuse_fill_dir_t fill, off_t, fuse_file_info*,
                   fuse_readdir_flags) {
  return answer_at(path, [&](const std::string& place) -> Status {
    SHIMA_TRY_ASSIGN(const auto entries, tree_at(place).entries(place));
    fill(buffer, ".", nullptr, 0, no_flags);
    fill(buffer, "..", nullptr, 0, no_flags);
    for (const FileTree::Entry& entry : entries) {
      if (is_hidden(entry.name)) continue;
      const struct stat facts = as_own(entry.facts);
      if (fill(buffer, entry.name.c_str(), &facts, 0, no_flags) != 0) return refusal(ENOMEM);
    }
    return {};
  });
}

int make_directory(const char* path, mode_t mode) {
  if (is_hidden(last_name(path))) return -EPERM;
  return answer_at(path, [&](const std::string& place) {
    return tree_at(place).make_directory(place, mode & 07777U);
  });
}

int make_link(const char* text, const char* path) {
  if (is_hidden(last_name(path))) return -EPERM;
  return answer_at(
      path, [&](const std::string& place) { return tree_at(place).make_symlink(place, text); });
}

// The system cuts a text that is too long for its caller.
int read_link(const char* path, char* text, std::size_t room) {
  return answer_at(path, [&](const std::string& place) -> Status {
    SHIMA_TRY_ASSIGN(const std::string whole, tree_at(place).read_symlink(place));
    text[whole.copy(text, room - 1)] = '\0';
    return {};
  });
}

// The kernel makes regular files by create().
int make_special(const char*, mode_t, dev_t) { return -EPERM; }

int add_name(const char*, const char*) { return -EPERM; }

int remove_directory(const char* path) { return answer_at(path, remove_far_directory); }

int remove(const char* path) { return answer_at(path, remove_file); }

int rename(const char* from, const char* to, unsigned flags) {
  if (is_hidden(last_name(to))) return -EPERM;
  return answer_at(
      from, [&](const std::string& place) { return rename_far(place, far_path(to), flags); });
}

int change_mode(const char* path, mode_t mode, fuse_file_info*) {
  return answer_at(path, [&](const std::string& place) { return set_permissions(place, mode); });
}

int change_owner(const char*, uid_t user, gid_t group, fuse_file_info*) {
  const bool keeps = (user == static_cast<uid_t>(-1) || user == ::getuid()) &&
                     (group == static_cast<gid_t>(-1) || group == ::getgid());
  return keeps ? 0 : -EPERM;
}

int change_size(const char* path, off_t size, fuse_file_info* info) {
  if (info != nullptr)
    return answer_in(info, [&](FarHandle& open) { return open.file().truncate({size}); });
  return answer_at(path, [&](const std::string& place) -> Status {
    SHIMA_TRY_ASSIGN(auto file, LogicalFile::open({.path = place, .write = true}));
    SHIMA_TRY(file.truncate({size}));
    return file.close();
  });
}

int change_times(const char* path, const timespec* times, fuse_file_info*) {
  return answer_at(path, [&](const std::string& place) -> Status {
    SHIMA_TRY_ASSIGN(const struct stat facts, tree_at(place).examine(place, FileTree::Links::keep));
    const FileTimes wanted{times[0], times[1]};
    return S_ISLNK(facts.st_mode) ? tree_at(place).set_times(place, wanted)
                                  : set_times(place, wanted);
  });
}

Status keep(const std::string& place, fuse_file_info* info) {
  SHIMA_TRY_ASSIGN(auto handle, FarHandle::open(place, info->flags));
  // Past the page cache, a write is one append. Other writes go through it: it would keep old
  // bytes.
  const bool appends_only = (info->flags & (O_ACCMODE | O_APPEND)) == (O_WRONLY | O_APPEND);
  info->direct_io = appends_only || (info->flags & O_DIRECT) != 0 ? 1 : 0;
  info->fh = reinterpret_cast<std::uint64_t>(handle.release());
  return {};
}

int open(const char* path, fuse_file_info* info) {
  return answer_at(path, [&](const std::string& place) { return keep(place, info); });
}

int create(const char* path, mode_t mode, fuse_file_info* info) {
  if (is_hidden(last_name(path))) return -EPERM;
  return answer_at(path, [&](const std::string& place) -> Status {
    const Status made = make_far_file(place, mode);
    const bool may_exist = (info->flags & O_EXCL) == 0;
    if (!made && (made.error().code != Code::file_exists || !may_exist)) return made;
    return keep(place, info);
  });
}

int release(const char*, fuse_file_info* info) {
  delete &handle_in(info);
  return 0;
}

int read(const char*, char* data, std::size_t len_bytes, off_t offset, fuse_file_info* info) {
  std::uint64_t found = 0;
  const int code = answer_in(info, [&](FarHandle& open) -> Status {
    SHIMA_TRY_ASSIGN(found, open.file().read(FileOffset{offset}, data, len_bytes));
    return {};
  });
  return code < 0 ? code : static_cast<int>(found);
}

int write(const char*, const char* data, std::size_t len_bytes, off_t offset,
          fuse_file_info* info) {
  const int code = answer_in(
      info, [&](FarHandle& open) { return open.write(data, len_bytes, FileOffset{offset}); });
  return code < 0 ? code : static_cast<int>(len_bytes);
}

int allocate(const char*, int mode, off_t offset, off_t len, fuse_file_info* info) {
  if (mode != 0) return -EOPNOTSUPP;
  if (len <= 0 || offset < 0) return -EINVAL;
  if (offset > INT64_MAX - len) return -EFBIG;
  return answer_in(
      info, [&](FarHandle& open) { return open.file().preallocate(FileOffset{offset + len}); });
}

int sync(const char*, int, fuse_file_info* info) {
  return answer_in(info, [](FarHandle& open) { return open.file().sync(); });
}

void* begin(fuse_conn_info* connection, fuse_config* config) {
  connection->want |= FUSE_CAP_AUTO_INVAL_DATA & connection->capable;
  connection->want &= ~static_cast<unsigned>(FUSE_CAP_WRITEBACK_CACHE | FUSE_CAP_READDIRPLUS |
                                             FUSE_CAP_HANDLE_KILLPRIV | FUSE_CAP_ATOMIC_O_TRUNC);
  config->attr_timeout = 0;
  config->entry_timeout = 0;
  config->negative_timeout = 0;
  config->use_ino = 1;
  ::umask(0);  // the kernel has applied the caller's umask
  return fuse_get_context()->private_data;
}

fuse_operations operations() {
  fuse_operations calls{};
  calls.init = begin;
  calls.getattr = get_attributes;
  calls.readdir = read_directory;
  calls.mkdir = make_directory;
  calls.readlink = read_link;
  calls.symlink = make_link;
  calls.link = add_name;
  calls.mknod = make_special;
  calls.rmdir = remove_directory;
  calls.unlink = remove;
  calls.rename = rename;
  calls.chmod = change_mode;
  calls.chown = change_owner;
  calls.truncate = change_size;
  calls.utimens = change_times;
  calls.open = open;
  calls.create = create;
  calls.release = release;
  calls.read = read;
  calls.write = write;
  calls.fallocate = allocate;
  calls.fsync = sync;
  return calls;
}

Status serve_mounted(const MountOptions& options, struct fuse* session) {
  fuse_session* const lower = fuse_get_session(session);
  if (fuse_set_signal_handlers(lower) != 0) return fail(Code::internal, "cannot handle signals");
  Status served = go_to_background(options);
  if (served)
    served = serve([session](fuse_loop_config* config) { return fuse_loop_mt(session, config); });
  fuse_remove_signal_handlers(lower);
  return served;
}

}  // namespace

Status run_far_mount(const MountOptions& options) {
  if (!is_directory_at(options.directory))
    return fail(Code::bad_file_name, options.directory + " is not a directory of an I/O node");
  MountOptions kept = options;
  std::vector<std::string> words{"shima", "-o",
                                 mount_words(options)};  // as for a directory of this machine
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  fuse_args arguments{static_cast<int>(pointers.size()), pointers.data(), 0};
  const fuse_operations calls = operations();
  struct fuse* const session = fuse_new(&arguments, &calls, sizeof calls, &kept);
  fuse_opt_free_args(&arguments);
  if (session == nullptr) return fail(Code::internal, "libfuse rejects the options of the mount");
  Status served;
  if (fuse_mount(session, options.mount_point.c_str()) != 0) {
    served = fail(Code::io, "cannot mount at " + options.mount_point);
  } else {
    served = serve_mounted(options, session);
    fuse_unmount(session);
  }
  fuse_destroy(session);
  return served;
}

}  // namespace shima::fuse
