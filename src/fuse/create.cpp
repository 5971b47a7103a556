#include "fuse/create.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <string_view>

#include "store/master_store.h"

namespace shima::fuse {
namespace {

// How new files of a folder are striped; nothing: they are plain.
std::optional<std::vector<StripedRegion>> default_regions(const Node&) { return {}; }

Status make_striped(const std::shared_ptr<Node>& folder, const std::string& name, mode_t mode,
                    bool exclusive, std::vector<StripedRegion> regions) {
  for (const StripedRegion& region : regions)
    for (const std::string& target : region.targets)
      if (target == beside_target) make_beside_folder(*folder);
  return create_striped({.path = Place{folder, name}.path(),
                         .regions = std::move(regions),
                         .permissions = mode & 07777U,
                         .exclusive = exclusive});
}

}  // namespace

void make_beside_folder(const Node& folder) {
  struct stat facts{};
  if (::fstat(folder.fd(), &facts) == 0)
    ::mkdirat(folder.fd(), ".shima", facts.st_mode & 0777U);
}

Status give_to_caller(const fuse_ctx& caller, int folder_fd, const char* name) {
  if (::geteuid() != 0 || (caller.uid == 0 && caller.gid == 0)) return {};
  struct stat folder{};
  SHIMA_TRY(done(::fstat(folder_fd, &folder)));
  const gid_t group = (folder.st_mode & S_ISGID) != 0 ? static_cast<gid_t>(-1) : caller.gid;
  return done(::fchownat(folder_fd, name, caller.uid, group, AT_SYMLINK_NOFOLLOW));
}

Result<std::unique_ptr<Handle>> create_file(Tree& tree, const fuse_ctx& caller,
                                            const std::shared_ptr<Node>& folder,
                                            const std::string& name, int flags, mode_t mode) {
  if (is_hidden(name)) return refusal(EPERM);
  const bool exclusive = (flags & O_EXCL) != 0;
  UniqueFd created;
  if (auto regions = default_regions(*folder)) {
    SHIMA_TRY(make_striped(folder, name, mode, exclusive, *std::move(regions)));
  } else {
    constexpr int not_wanted = O_TRUNC | O_DIRECT | O_NOATIME | O_APPEND;
    const int how = (flags & ~not_wanted) | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    created = UniqueFd(::openat(folder->fd(), name.c_str(), how, mode));
    if (created) SHIMA_TRY(give_to_caller(caller, folder->fd(), name.c_str()));
    if (!created && (errno != EEXIST || exclusive)) return std::unexpected(done(-1).error());
  }
  SHIMA_TRY_ASSIGN(auto node, tree.look_up(folder, name));
  auto handle = Handle::open(tree, node, flags, std::move(created));
  if (!handle) tree.nodes().forget(node->number, 1);
  return handle;
}

Result<std::vector<std::string>> names_in(int folder_fd) {
  const int fd = ::openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  SHIMA_TRY(done(fd));
  DIR* const folder = ::fdopendir(fd);
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(folder)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  ::closedir(folder);
  return names;
}

}  // namespace shima::fuse
