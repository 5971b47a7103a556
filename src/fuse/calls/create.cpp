#include "fuse/calls/create.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file/hints/directory_default.h"
#include "file/striping.h"
#include "fuse/tree/change.h"
#include "store/striped/master_store.h"

namespace shima::fuse {
namespace {

Status make_striped(const Place& place, mode_t mode, std::vector<StripedRegion> regions) {
  return create_striped({.path = place.path(),
                         .regions = std::move(regions),
                         .permissions = mode & 07777U,
                         .exclusive = true});
}

// Creates a file, and opens it if it is plain; file_exists if the name is taken.
Result<UniqueFd> make_file(const Place& place, int flags, mode_t mode) {
  SHIMA_TRY_ASSIGN(auto regions, default_regions(place.path()));
  if (regions) {
    SHIMA_TRY(make_striped(place, mode, *std::move(regions)));
    return UniqueFd();
  }
  constexpr int not_wanted = O_TRUNC | O_DIRECT | O_NOATIME | O_APPEND;
  const int how = (flags & ~not_wanted) | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  UniqueFd created(::openat(place.directory->fd(), place.name.c_str(), how, mode));
  SHIMA_TRY(done(created.get()));
  return created;
}

Status give_striped_to_caller(Tree& tree, const fuse_ctx& caller, Node& node) {
  if (::geteuid() != 0 || (caller.uid == 0 && caller.gid == 0)) return {};
  return change_owner(tree, node, caller.uid, caller.gid);
}

}  // namespace

Result<std::optional<std::vector<StripedRegion>>> default_regions(const std::string& path) {
  const Hints hints = with_directory_default({}, path);
  if (!wants_striping(hints)) return std::nullopt;
  SHIMA_TRY_ASSIGN(auto regions, regions_for(hints));
  return regions;
}

Status give_to_caller(const fuse_ctx& caller, int directory_fd, int made_fd) {
  if (::geteuid() != 0 || (caller.uid == 0 && caller.gid == 0)) return {};
  struct stat directory{};
  SHIMA_TRY(done(::fstat(directory_fd, &directory)));
  const gid_t group = (directory.st_mode & S_ISGID) != 0 ? static_cast<gid_t>(-1) : caller.gid;
  return done(::fchownat(made_fd, "", caller.uid, group, AT_EMPTY_PATH));
}

Status give_to_caller(const fuse_ctx& caller, int directory_fd, const char* name, mode_t type) {
  if (::geteuid() != 0 || (caller.uid == 0 && caller.gid == 0)) return {};
  const UniqueFd made(::openat(directory_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  SHIMA_TRY(done(made.get()));
  struct stat facts{};
  SHIMA_TRY(done(::fstat(made.get(), &facts)));
  const nlink_t links = type == S_IFDIR ? 2 : 1;
  if ((facts.st_mode & S_IFMT) != type || facts.st_uid != 0 || facts.st_nlink > links)
    return refusal(EIO);
  return give_to_caller(caller, directory_fd, made.get());
}

Result<std::unique_ptr<Handle>> create_file(Tree& tree, const fuse_ctx& caller,
                                            const std::shared_ptr<Node>& directory,
                                            const std::string& name, int flags, mode_t mode) {
  if (is_hidden(name)) return refusal(EPERM);
  auto created = make_file({directory, name}, flags, mode);
  const bool is_new = created.has_value();
  if (!is_new && (created.error().code != Code::file_exists || (flags & O_EXCL) != 0))
    return std::unexpected(created.error());
  if (is_new && *created) SHIMA_TRY(give_to_caller(caller, directory->fd(), created->get()));
  SHIMA_TRY_ASSIGN(auto node, tree.look_up(directory, name));
  if (is_new && node->kind == Node::Kind::striped)
    SHIMA_TRY(give_striped_to_caller(tree, caller, *node));
  auto handle = Handle::open(tree, node, flags, is_new ? *std::move(created) : UniqueFd());
  if (!handle) tree.nodes().forget(node->number, 1);
  return handle;
}

}  // namespace shima::fuse
