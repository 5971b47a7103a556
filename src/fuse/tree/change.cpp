#include "fuse/tree/change.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <mutex>
#include <vector>

#include "base/unique_fd.h"
#include "fuse/tree/errors.h"
#include "store/striped/belonging.h"
#include "store/striped/master_store.h"
#include "store/striped/parts.h"
#include "store/target/directory_lock.h"
#include "store/target/paths.h"

namespace shima::fuse {
namespace {

bool is_striped(const Node& node) { return node.kind == Node::Kind::striped; }

// Empty for a file without a name.
std::string path_of(Node& node) {
  const std::lock_guard lock(node.parts().mutex);
  return node.parts().removed ? std::string() : node.parts().place.path();
}

// Opens an entry and calls `change(descriptor)`, so that a user who replaces the entry, for example
// by a link, cannot redirect the change to a file elsewhere.
template <class Change>
Status change_entry(int directory_fd, const char* name, Change change) {
  const UniqueFd fd(::openat(directory_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  SHIMA_TRY(done(fd.get()));
  struct stat facts{};
  SHIMA_TRY(done(::fstat(fd.get(), &facts)));
  if (!S_ISREG(facts.st_mode)) return refusal(EIO);
  return done(change(fd.get()));
}

// Calls `change(descriptor)` for the master file, its subfiles, and the files beside them, while
// the master file is locked against replacement. Files on I/O nodes belong to the node's user, and
// keep their owner.
template <class Change>
Status change_parts(Tree& tree, Node& node, Change change) {
  if (path_of(node).empty()) {
    const std::lock_guard lock(node.parts().mutex);
    for (const UniqueFd& fd : node.parts().subfiles) SHIMA_TRY(done(change(fd.get())));
    return {};
  }
  SHIMA_TRY_ASSIGN(const auto striped, tree.description(node));
  SHIMA_TRY_ASSIGN(const std::string path, real_path_of(path_of(node)));
  SHIMA_TRY_ASSIGN(const DirectoryLock lock, DirectoryLock::take(path));
  SHIMA_TRY_ASSIGN(const auto targets,
                   open_targets(striped->master.targets(), path, Target::Purpose::use));
  SHIMA_TRY(check_own_parts(striped->master, path, targets));
  for (const Part& part : parts_of(striped->master, targets))
    if (part.target->directory_fd() >= 0)
      SHIMA_TRY(change_entry(part.target->directory_fd(), part.name.c_str(), change));
  Place place;
  {
    const std::lock_guard parts_lock(node.parts().mutex);
    place = node.parts().place;
  }
  return change_entry(place.directory->fd(), place.name.c_str(), change);
}

}  // namespace

Status change_mode(Tree&, Node& node, mode_t mode) {
  if (!is_striped(node)) return done(::chmod(node.path().c_str(), mode));
  const std::string path = path_of(node);
  if (!path.empty()) return set_permissions(path, mode);
  const std::lock_guard lock(node.parts().mutex);
  node.parts().seen.st_mode = (node.parts().seen.st_mode & S_IFMT) | (mode & 07777U);
  return {};
}

Status change_owner(Tree& tree, Node& node, uid_t user, gid_t group) {
  const auto change = [&](int fd) { return ::fchownat(fd, "", user, group, AT_EMPTY_PATH); };
  if (!is_striped(node)) return done(change(node.fd()));
  SHIMA_TRY(change_parts(tree, node, change));
  tree.set_owner(node, user, group);
  return {};
}

Status change_size(Node& node, off_t size) {
  if (node.kind == Node::Kind::damaged)
    return fail(Code::bad_file, "setting the size of a file whose master file is damaged");
  if (!is_striped(node)) return done(::truncate(node.path().c_str(), size));
  const std::string path = path_of(node);
  if (path.empty()) return refusal(ESTALE);
  FileId id;
  {
    const std::lock_guard lock(node.parts().mutex);
    id = node.parts().striped->master.id;
  }
  const Status status = truncate_striped(path, as_unsigned(size), &id);
  if (!status && status.error().code == Code::file_in_use) return refusal(ESTALE);
  return status;
}

Status change_times(Node& node, const FileTimes& times) {
  const auto change = [&](int fd) { return ::utimensat(fd, "", times.data(), AT_EMPTY_PATH); };
  if (!is_striped(node)) return done(change(node.fd()));
  const std::string path = path_of(node);
  if (!path.empty()) return set_times(path, times);
  const std::lock_guard lock(node.parts().mutex);
  for (const UniqueFd& fd : node.parts().subfiles) SHIMA_TRY(done(change(fd.get())));
  return {};
}

}  // namespace shima::fuse
