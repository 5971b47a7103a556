// Create, remove, rename.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "fuse/calls/create.h"
#include "fuse/calls/mount.h"
#include "store/striped/master_store.h"
#include "store/target/directory_names.h"
#include "store/target/own_directory.h"

namespace shima::fuse {
namespace {

bool is_striped(const Node& node) { return node.kind == Node::Kind::striped; }

// A looked-up name, forgotten when the call ends.
class Looked {
 public:
  static Result<Looked> up(Tree& tree, const std::shared_ptr<Node>& directory, const char* name) {
    SHIMA_TRY_ASSIGN(auto node, tree.look_up(directory, name));
    return Looked(tree, std::move(node));
  }
  Looked(Looked&& other) noexcept : tree_(other.tree_), node_(std::move(other.node_)) {}
  Looked& operator=(Looked&&) = delete;
  Looked(const Looked&) = delete;
  Looked& operator=(const Looked&) = delete;
  ~Looked() {
    if (node_) tree_.nodes().forget(node_->number, 1);
  }
  [[nodiscard]] Node& operator*() const { return *node_; }
  [[nodiscard]] Node* operator->() const { return node_.get(); }

 private:
  Looked(Tree& tree, std::shared_ptr<Node> node) : tree_(tree), node_(std::move(node)) {}
  Tree& tree_;
  std::shared_ptr<Node> node_;
};

FileId id_of(Node& node) {
  const std::lock_guard lock(node.parts().mutex);
  return node.parts().striped->master.id;
}

void mark_removed(Node& node) {
  const std::lock_guard lock(node.parts().mutex);
  node.parts().removed = true;
}

void move_place(Node& node, const Place& place) {
  const std::lock_guard lock(node.parts().mutex);
  node.parts().place = place;
}

// Calls make(directory, name), gives the new object to the requesting user, and replies with it.
template <class Make>
void make_and_reply(fuse_req_t request, fuse_ino_t directory_number, const char* name, mode_t type,
                    Make make) {
  answer(request, [&]() -> Status {
    if (is_hidden(name)) return refusal(EPERM);
    SHIMA_TRY_ASSIGN(const auto directory, node_of(request, directory_number));
    SHIMA_TRY(done(make(directory->fd())));
    SHIMA_TRY(give_to_caller(*fuse_req_ctx(request), directory->fd(), name, type));
    SHIMA_TRY_ASSIGN(const auto node, tree_of(request).look_up(directory, name));
    return reply_node(request, node);
  });
}

void make_directory(fuse_req_t request, fuse_ino_t directory, const char* name, mode_t mode) {
  make_and_reply(request, directory, name, S_IFDIR,
                 [&](int fd) { return ::mkdirat(fd, name, mode); });
}

void make_special(fuse_req_t request, fuse_ino_t directory, const char* name, mode_t mode,
                  dev_t device) {
  make_and_reply(request, directory, name, (mode & S_IFMT) == 0 ? S_IFREG : mode & S_IFMT,
                 [&](int fd) { return ::mknodat(fd, name, mode, device); });
}

void make_link(fuse_req_t request, const char* goal, fuse_ino_t directory, const char* name) {
  make_and_reply(request, directory, name, S_IFLNK,
                 [&](int fd) { return ::symlinkat(goal, fd, name); });
}

// A striped file can have only one name, because its master file is replaced by rename.
void add_name(fuse_req_t request, fuse_ino_t number, fuse_ino_t directory_number,
              const char* name) {
  answer(request, [&]() -> Status {
    if (is_hidden(name)) return refusal(EPERM);
    SHIMA_TRY_ASSIGN(const auto node, node_of(request, number));
    SHIMA_TRY_ASSIGN(const auto directory, node_of(request, directory_number));
    if (node->kind != Node::Kind::plain) return refusal(EPERM);
    SHIMA_TRY(
        done(::linkat(AT_FDCWD, node->path().c_str(), directory->fd(), name, AT_SYMLINK_FOLLOW)));
    SHIMA_TRY_ASSIGN(const auto linked, tree_of(request).look_up(directory, name));
    return reply_node(request, linked);
  });
}

void remove_name(fuse_req_t request, fuse_ino_t directory_number, const char* name) {
  answer_done(request, [&]() -> Status {
    SHIMA_TRY_ASSIGN(const auto directory, node_of(request, directory_number));
    SHIMA_TRY_ASSIGN(const Looked node, Looked::up(tree_of(request), directory, name));
    if (node->kind == Node::Kind::damaged)
      return fail(Code::bad_file, std::string("removing ") + name +
                                      ", whose master file is damaged; shima fsck can rebuild it");
    if (!is_striped(*node)) return done(::unlinkat(directory->fd(), name, 0));
    SHIMA_TRY(remove_file(Place{directory, name}.path()));
    mark_removed(*node);
    return {};
  });
}

// A directory that contains only an empty directory of subfiles is empty for users of the mount.
Status remove_own_directories(int directory_fd, const char* name, const std::string& path) {
  const UniqueFd fd(::openat(directory_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  SHIMA_TRY(done(fd.get()));
  const auto entries = names_in(fd.get(), path);
  if (!entries) return refusal(entries.error().sys_errno);
  if (entries->size() != 1 || entries->front() != ".shima") return refusal(ENOTEMPTY);
  SHIMA_TRY(remove_own_directory(fd.get(), path));
  return done(::unlinkat(directory_fd, name, AT_REMOVEDIR));
}

void remove_directory(fuse_req_t request, fuse_ino_t directory_number, const char* name) {
  answer_done(request, [&]() -> Status {
    if (is_hidden(name)) return refusal(ENOENT);
    SHIMA_TRY_ASSIGN(const auto directory, node_of(request, directory_number));
    const Status removed = done(::unlinkat(directory->fd(), name, AT_REMOVEDIR));
    if (removed || removed.error().sys_errno != ENOTEMPTY) return removed;
    return remove_own_directories(directory->fd(), name, Place{directory, name}.path());
  });
}

struct Renaming {
  Place from;
  Place to;
  unsigned flags;
};

Status rename_plain(const Renaming& names) {
  return done(
      static_cast<int>(::renameat2(names.from.directory->fd(), names.from.name.c_str(),
                                   names.to.directory->fd(), names.to.name.c_str(), names.flags)));
}

// Subfiles beside a file do not move with it into another directory.
Status exchange(const Renaming& names, Node& first, Node& second) {
  const bool striped = is_striped(first) || is_striped(second);
  if (striped && names.from.directory != names.to.directory) return refusal(EINVAL);
  SHIMA_TRY(rename_plain(names));
  move_place(first, names.to);
  move_place(second, names.from);
  if (is_striped(first)) SHIMA_TRY(tell_copies(names.to.path()));
  if (is_striped(second)) SHIMA_TRY(tell_copies(names.from.path()));
  return {};
}

Status rename(Tree& tree, const Renaming& names) {
  SHIMA_TRY_ASSIGN(const Looked node,
                   Looked::up(tree, names.from.directory, names.from.name.c_str()));
  const auto replaced = Looked::up(tree, names.to.directory, names.to.name.c_str());
  if (!replaced && replaced.error().sys_errno != ENOENT) return std::unexpected(replaced.error());
  if (replaced && (names.flags & RENAME_EXCHANGE) != 0) return exchange(names, *node, **replaced);
  const bool striped = is_striped(*node) || (replaced && is_striped(**replaced));
  if (node->kind == Node::Kind::damaged || (replaced && (*replaced)->kind == Node::Kind::damaged))
    return fail(Code::bad_file,
                "renaming a file whose master file is damaged; shima fsck can "
                "rebuild it");
  if (!striped) return rename_plain(names);
  if (replaced && (names.flags & RENAME_NOREPLACE) != 0) return refusal(EEXIST);
  if ((names.flags & ~static_cast<unsigned>(RENAME_NOREPLACE)) != 0) return refusal(EINVAL);
  SHIMA_TRY(rename_file(names.from.path(), names.to.path()));
  if (replaced && is_striped(*node) && is_striped(**replaced) && id_of(*node) == id_of(**replaced))
    return {};  // two names of one file: nothing has happened
  if (replaced && is_striped(**replaced)) mark_removed(**replaced);
  if (is_striped(*node)) move_place(*node, names.to);
  return {};
}

void rename_call(fuse_req_t request, fuse_ino_t from_directory, const char* from,
                 fuse_ino_t to_directory, const char* to, unsigned flags) {
  answer_done(request, [&]() -> Status {
    if (is_hidden(to)) return refusal(EPERM);
    SHIMA_TRY_ASSIGN(auto source, node_of(request, from_directory));
    SHIMA_TRY_ASSIGN(auto goal, node_of(request, to_directory));
    return rename(tree_of(request), {{std::move(source), from}, {std::move(goal), to}, flags});
  });
}

}  // namespace

void add_name_calls(fuse_lowlevel_ops& calls) {
  calls.mkdir = make_directory;
  calls.mknod = make_special;
  calls.symlink = make_link;
  calls.link = add_name;
  calls.unlink = remove_name;
  calls.rmdir = remove_directory;
  calls.rename = rename_call;
}

}  // namespace shima::fuse
