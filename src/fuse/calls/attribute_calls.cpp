// Look-up, attributes, link targets, free space.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <array>
#include <climits>
#include <set>

#include "fuse/calls/mount.h"
#include "fuse/tree/change.h"
#include "fuse/tree/handle.h"
#include "store/target/target.h"

namespace shima::fuse {

Result<fuse_entry_param> entry_of(Tree& tree, const std::shared_ptr<Node>& node) {
  fuse_entry_param entry{};
  entry.ino = node->number;
  SHIMA_TRY_ASSIGN(entry.attr, tree.attributes(*node));
  return entry;
}

Status reply_node(fuse_req_t request, const std::shared_ptr<Node>& node) {
  Tree& tree = tree_of(request);
  const auto entry = entry_of(tree, node);
  if (!entry || fuse_reply_entry(request, &*entry) != 0) tree.nodes().forget(node->number, 1);
  if (!entry) return std::unexpected(entry.error());
  return {};
}

namespace {

void look_up(fuse_req_t request, fuse_ino_t directory_number, const char* name) {
  answer(request, [&]() -> Status {
    SHIMA_TRY_ASSIGN(const auto directory, node_of(request, directory_number));
    SHIMA_TRY_ASSIGN(const auto node, tree_of(request).look_up(directory, name));
    return reply_node(request, node);
  });
}

void forget(fuse_req_t request, fuse_ino_t number, std::uint64_t times) {
  tree_of(request).nodes().forget(number, times);
  fuse_reply_none(request);
}

void forget_many(fuse_req_t request, std::size_t count, fuse_forget_data* forgets) {
  for (std::size_t i = 0; i < count; ++i)
    tree_of(request).nodes().forget(forgets[i].ino, forgets[i].nlookup);
  fuse_reply_none(request);
}

Status reply_attributes(fuse_req_t request, Node& node) {
  SHIMA_TRY_ASSIGN(const struct stat facts, tree_of(request).attributes(node));
  fuse_reply_attr(request, &facts, 0);
  return {};
}

// The kernel asks before it reads from its pages: pages that may be old are dropped first.
void get_attributes(fuse_req_t request, fuse_ino_t number, fuse_file_info*) {
  answer(request, [&]() -> Status {
    SHIMA_TRY_ASSIGN(const auto node, node_of(request, number));
    Watcher& watcher = tree_of(request).watcher();
    bool stale = false;
    if (node->freshness().readers > 0) {
      if (node->freshness().unnoticed) {
        SHIMA_TRY_ASSIGN(const struct stat facts, tree_of(request).attributes(*node));
        std::ignore = Tree::changed_unnoticed(*node, facts);
      }
      stale = watcher.is_stale(*node);
    }
    if (!stale) return reply_attributes(request, *node);
    watcher.renew(node, [request, node] {
      answer(request, [&] { return reply_attributes(request, *node); });
    });
    return {};
  });
}

FileTimes times_of(const struct stat& wanted, int what) {
  const auto one = [&](int given, int now, const timespec& time) {
    if ((what & now) != 0) return timespec{0, UTIME_NOW};
    return (what & given) != 0 ? time : timespec{0, UTIME_OMIT};
  };
  return {one(FUSE_SET_ATTR_ATIME, FUSE_SET_ATTR_ATIME_NOW, wanted.st_atim),
          one(FUSE_SET_ATTR_MTIME, FUSE_SET_ATTR_MTIME_NOW, wanted.st_mtim)};
}

// The owner first, because changing it clears permission bits.
Status change(Tree& tree, Node& node, const struct stat& wanted, int what, Handle* handle) {
  constexpr int owner = FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID;
  constexpr int times =
      FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_ATIME_NOW | FUSE_SET_ATTR_MTIME_NOW;
  if ((what & owner) != 0)
    SHIMA_TRY(change_owner(
        tree, node, (what & FUSE_SET_ATTR_UID) != 0 ? wanted.st_uid : static_cast<uid_t>(-1),
        (what & FUSE_SET_ATTR_GID) != 0 ? wanted.st_gid : static_cast<gid_t>(-1)));
  if ((what & FUSE_SET_ATTR_MODE) != 0) SHIMA_TRY(change_mode(tree, node, wanted.st_mode));
  if ((what & FUSE_SET_ATTR_SIZE) != 0)
    SHIMA_TRY(handle != nullptr ? handle->truncate(FileOffset{wanted.st_size})
                                : change_size(node, wanted.st_size));
  if ((what & times) != 0) SHIMA_TRY(change_times(node, times_of(wanted, what)));
  return {};
}

void set_attributes(fuse_req_t request, fuse_ino_t number, struct stat* wanted, int what,
                    fuse_file_info* info) {
  answer(request, [&]() -> Status {
    SHIMA_TRY_ASSIGN(const auto node, node_of(request, number));
    auto* handle = info == nullptr ? nullptr : reinterpret_cast<Handle*>(info->fh);
    SHIMA_TRY(change(tree_of(request), *node, *wanted, what, handle));
    return reply_attributes(request, *node);
  });
}

void read_link(fuse_req_t request, fuse_ino_t number) {
  answer(request, [&]() -> Status {
    SHIMA_TRY_ASSIGN(const auto node, node_of(request, number));
    std::array<char, PATH_MAX + 1> goal{};
    const ssize_t len = ::readlinkat(node->fd(), "", goal.data(), goal.size() - 1);
    SHIMA_TRY(done(static_cast<int>(len)));
    fuse_reply_readlink(request, goal.data());
    return {};
  });
}

// The directory's file system and those of the configured targets, each counted once.
Status sum_of_disks(int directory_fd, struct statvfs& sum) {
  struct stat place{};
  SHIMA_TRY(done(::fstatvfs(directory_fd, &sum)));
  SHIMA_TRY(done(::fstat(directory_fd, &place)));
  std::set<dev_t> counted{place.st_dev};
  const auto targets = configured_targets();
  if (!targets) return {};
  for (const TargetPlace& target : *targets) {
    struct statvfs disk{};
    if (::stat(target.directory.c_str(), &place) != 0 ||
        ::statvfs(target.directory.c_str(), &disk) != 0 || !counted.insert(place.st_dev).second)
      continue;
    const auto blocks = [&](fsblkcnt_t count) { return count * disk.f_frsize / sum.f_frsize; };
    sum.f_blocks += blocks(disk.f_blocks);
    sum.f_bfree += blocks(disk.f_bfree);
    sum.f_bavail += blocks(disk.f_bavail);
  }
  return {};
}

void tell_room(fuse_req_t request, fuse_ino_t) {
  answer(request, [&]() -> Status {
    SHIMA_TRY_ASSIGN(const auto root, node_of(request, 1));
    struct statvfs sum{};
    SHIMA_TRY(sum_of_disks(root->fd(), sum));
    fuse_reply_statfs(request, &sum);
    return {};
  });
}

}  // namespace

void add_attribute_calls(fuse_lowlevel_ops& calls) {
  calls.lookup = look_up;
  calls.forget = forget;
  calls.forget_multi = forget_many;
  calls.getattr = get_attributes;
  calls.setattr = set_attributes;
  calls.readlink = read_link;
  calls.statfs = tell_room;
}

}  // namespace shima::fuse
