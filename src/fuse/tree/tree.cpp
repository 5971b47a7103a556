#include "fuse/tree/tree.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/log.h"
#include "fuse/tree/errors.h"
#include "store/striped/master_store.h"
#include "store/striped/parts.h"
#include "store/target/text_file.h"

namespace shima::fuse {
namespace {

std::string plain_key(const struct stat& facts) {
  return fmt::format("{}:{}", facts.st_dev, facts.st_ino);
}

std::string striped_key(const FileId& id, uid_t owner) {
  return fmt::format("striped {} {}", id.hex, owner);
}

// Whether a file begins like a master file; false if it cannot be read.
bool begins_as_master(int path_fd) {
  const UniqueFd fd(
      ::open(fmt::format("/proc/self/fd/{}", path_fd).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::array<char, master_magic.size()> head{};
  return fd && ::pread(fd.get(), head.data(), head.size(), 0) == std::ssize(head) &&
         looks_like_master({head.data(), head.size()});
}

std::unexpected<Error> foreign_subfile(const std::string& which) {
  return fail(Code::access_denied,
              fmt::format("subfile {} and its file belong to different users", which), EACCES);
}

}  // namespace

bool is_hidden(std::string_view name) {
  return name == ".shima" || name == ".shima-target" || name.starts_with(".shima-target.") ||
         is_draft_name(name);
}

Result<std::shared_ptr<Node>> Tree::look_up(const std::shared_ptr<Node>& directory,
                                            const std::string& name) {
  if (is_hidden(name)) return refusal(ENOENT);
  UniqueFd fd(::openat(directory->fd(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat facts{};
  SHIMA_TRY(done(fd.get()));
  SHIMA_TRY(done(::fstat(fd.get(), &facts)));
  if (S_ISREG(facts.st_mode)) return take_regular(directory, name, std::move(fd), facts);
  return nodes_.remember(Node::Kind::plain, plain_key(facts), std::move(fd));
}

Result<std::shared_ptr<Node>> Tree::take_regular(const std::shared_ptr<Node>& directory,
                                                 const std::string& name, UniqueFd fd,
                                                 const struct stat& facts) {
  const std::string key = plain_key(facts);
  const auto known = nodes_.peek(key);
  const bool may_be_master =
      facts.st_size > std::ssize(master_magic) && facts.st_size <= as_signed(largest_master_bytes);
  if (may_be_master && !(known && known->known_plain(facts)) && begins_as_master(fd.get())) {
    auto striped = take_striped(directory, name);
    if (striped || striped.error().code != Code::bad_file) return striped;
    log(LogLevel::warn, "{}", describe(striped.error()));
    return nodes_.remember(Node::Kind::damaged, "damaged " + key, std::move(fd));
  }
  auto node = nodes_.remember(Node::Kind::plain, key, std::move(fd));
  node->set_known_plain(facts);
  return node;
}

Result<std::shared_ptr<Node>> Tree::take_striped(const std::shared_ptr<Node>& directory,
                                                 const std::string& name) {
  Place place{directory, name};
  struct stat facts{};
  SHIMA_TRY_ASSIGN(auto master, read_openable_master(place.path(), &facts));
  if (!master) return refusal(ENOENT);  // a pending unlink was finished
  struct stat now{};
  SHIMA_TRY(done(::fstatat(directory->fd(), name.c_str(), &now, AT_SYMLINK_NOFOLLOW)));
  // The name may have been a link to another user's master file when that was read.
  if (!S_ISREG(now.st_mode) || now.st_uid != facts.st_uid) return refusal(ESTALE);
  SHIMA_TRY_ASSIGN(Layout layout, layout_of(*master));
  auto node =
      nodes_.remember(Node::Kind::striped, striped_key(master->id, facts.st_uid), UniqueFd());
  StripedParts& parts = node->parts();
  const std::lock_guard lock(parts.mutex);
  parts.place = std::move(place);
  parts.seen = facts;
  parts.striped = std::make_shared<const Striped>(*std::move(master), std::move(layout));
  return node;
}

// The name may refer to another version of the master file, another file (also one with the
// same id that another user made), or nothing; in the latter two cases the node keeps its last
// state.
Status Tree::examine(StripedParts& parts) {
  if (parts.removed) return {};
  const Place& place = parts.place;
  struct stat now{};
  if (::fstatat(place.directory->fd(), place.name.c_str(), &now, AT_SYMLINK_NOFOLLOW) != 0 ||
      !S_ISREG(now.st_mode) || same_version(now, parts.seen))
    return {};
  SHIMA_TRY_ASSIGN(auto master, read_openable_master(place.path(), &now));
  if (!master || master->id != parts.striped->master.id || now.st_uid != parts.seen.st_uid)
    return {};
  SHIMA_TRY_ASSIGN(Layout layout, layout_of(*master));
  parts.seen = now;
  parts.striped = std::make_shared<const Striped>(*std::move(master), std::move(layout));
  return {};
}

Result<std::shared_ptr<const Striped>> Tree::description(Node& node) {
  StripedParts& parts = node.parts();
  const std::lock_guard lock(parts.mutex);
  SHIMA_TRY(examine(parts));
  return parts.striped;
}

Result<std::shared_ptr<const Target>> Tree::target(const std::string& name, const Place& place) {
  const bool is_beside = name == beside_target;
  std::mutex& mutex = is_beside ? place.directory->beside_mutex : targets_mutex_;
  const std::lock_guard lock(mutex);
  std::shared_ptr<const Target>& known = is_beside ? place.directory->beside : targets_[name];
  struct stat facts{};
  if (known && known->directory_fd() < 0) return known;
  // A directory of subfiles that was removed and created again is a different one.
  if (known && ::fstat(known->directory_fd(), &facts) == 0 && facts.st_nlink > 0) return known;
  SHIMA_TRY_ASSIGN(Target opened, Target::open(name, place.path(), Target::Purpose::use));
  known = std::make_shared<const Target>(std::move(opened));
  return known;
}

Result<std::vector<std::shared_ptr<const Target>>> Tree::targets_of(Node& node) {
  SHIMA_TRY_ASSIGN(const auto striped, description(node));
  std::vector<std::shared_ptr<const Target>> targets;
  Place place;
  {
    const std::lock_guard lock(node.parts().mutex);
    place = node.parts().place;
  }
  for (const std::string& name : striped->master.targets()) {
    auto found = target(name, place);
    if (!found) return fail(Code::io, describe(found.error()));
    targets.push_back(*std::move(found));
  }
  return targets;
}

Result<std::vector<UniqueFd>> Tree::open_subfiles(Node& node) {
  SHIMA_TRY_ASSIGN(const auto targets, targets_of(node));
  SHIMA_TRY_ASSIGN(const auto striped, description(node));
  uid_t owner = 0;
  {
    const std::lock_guard lock(node.parts().mutex);
    owner = node.parts().seen.st_uid;
  }
  std::vector<UniqueFd> fds;
  bool on_node = false;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const std::string name = subfile_name(striped->master.id, static_cast<int>(i));
    const std::string path = targets[i]->directory() + "/" + name;
    const auto facts = targets[i]->files().examine(name);
    if (!facts && facts.error().sys_errno != ENOENT) return fail(Code::io, describe(facts.error()));
    if (!facts || !S_ISREG(facts->st_mode))
      return fail(Code::io, fmt::format("subfile {} is missing; shima fsck reports details", path));
    if (others_ && facts->st_uid != owner) return foreign_subfile(path);
    on_node = on_node || targets[i]->directory_fd() < 0;
    if (on_node) continue;
    UniqueFd fd(
        ::openat(targets[i]->directory_fd(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat opened{};
    if (!fd || ::fstat(fd.get(), &opened) != 0 || opened.st_ino != facts->st_ino)
      return fail(Code::io, fmt::format("subfile {} was replaced meanwhile", path));
    fds.push_back(std::move(fd));
  }
  if (on_node) fds.clear();
  return fds;
}

Status Tree::check_owner(Node& node, const LogicalFile& opened) {
  if (!others_) return {};
  uid_t owner = 0;
  std::string path;
  {
    const std::lock_guard lock(node.parts().mutex);
    owner = node.parts().seen.st_uid;
    path = node.parts().place.name;
  }
  SHIMA_TRY_ASSIGN(const bool own, opened.belongs_to(owner));
  if (own) return {};
  return foreign_subfile("of " + path);
}

void Tree::set_owner(Node& node, uid_t user, gid_t group) {
  std::string key;
  {
    StripedParts& parts = node.parts();
    const std::lock_guard lock(parts.mutex);
    if (user != static_cast<uid_t>(-1)) parts.seen.st_uid = user;
    if (group != static_cast<gid_t>(-1)) parts.seen.st_gid = group;
    key = striped_key(parts.striped->master.id, parts.seen.st_uid);
  }
  nodes_.change_key(node, key);
}

}  // namespace shima::fuse
