#include "fuse/far/far_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "fuse/calls/create.h"
#include "fuse/tree/errors.h"
#include "fuse/tree/tree.h"
#include "store/striped/master_store.h"
#include "store/striped/parts.h"
#include "store/target/paths.h"

namespace shima::fuse {

Result<std::unique_ptr<FarHandle>> FarHandle::open(const std::string& path, int flags) {
  const int access = flags & O_ACCMODE;
  SHIMA_TRY_ASSIGN(
      LogicalFile file,
      LogicalFile::open({.path = path, .read = access != O_WRONLY, .write = access != O_RDONLY}));
  return std::unique_ptr<FarHandle>(new FarHandle(std::move(file), flags));
}

Status FarHandle::write(const void* data, std::uint64_t len_bytes, FileOffset offset) {
  if (offset.value > INT64_MAX - as_signed(len_bytes)) return refusal(EFBIG);
  if ((flags_ & O_APPEND) == 0) {
    SHIMA_TRY(file_.write(offset, data, len_bytes));
  } else {
    SHIMA_TRY(file_.append(data, len_bytes, appending_));
  }
  return (flags_ & O_DSYNC) != 0 ? file_.sync() : Status{};
}

struct stat as_own(struct stat facts) {
  facts.st_uid = ::getuid();
  facts.st_gid = ::getgid();
  return facts;
}

Result<struct stat> far_attributes(const std::string& path) {
  SHIMA_TRY_ASSIGN(struct stat facts, tree_at(path).examine(path, FileTree::Links::keep));
  if (!S_ISREG(facts.st_mode)) return as_own(facts);
  SHIMA_TRY_ASSIGN(auto master, read_openable_master(path, &facts));
  if (!master) return as_own(facts);
  SHIMA_TRY_ASSIGN(Layout layout, layout_of(*master));
  const Striped striped{*std::move(master), std::move(layout)};
  SHIMA_TRY_ASSIGN(const auto targets, find_targets(striped.master.targets(), path));
  SHIMA_TRY_ASSIGN(const PartsSeen seen, look_at_parts(striped.master, targets, Look::subfiles));
  std::vector<struct stat> subfiles;
  for (const Result<struct stat>& found : seen.facts) {
    if (!found) return fail(Code::io, describe(found.error()));
    subfiles.push_back(*found);
  }
  return as_own(striped_facts(striped, facts, subfiles));
}

Status make_far_file(const std::string& path, mode_t mode) {
  SHIMA_TRY_ASSIGN(auto regions, default_regions(path));
  if (regions)
    return create_striped({.path = path,
                           .regions = *std::move(regions),
                           .permissions = mode & 07777U,
                           .exclusive = true});
  SHIMA_TRY_ASSIGN(const auto made, tree_at(path).open({.path = path,
                                                        .write = true,
                                                        .create = true,
                                                        .exclusive = true,
                                                        .permissions = mode & 07777U}));
  return made->close();
}

// A directory that contains only .shima is empty.
Status remove_far_directory(const std::string& path) {
  FileTree& tree = tree_at(path);
  SHIMA_TRY_ASSIGN(const auto entries, tree.entries(path));
  for (const FileTree::Entry& entry : entries)
    if (!is_hidden(entry.name)) return refusal(ENOTEMPTY);
  SHIMA_TRY(tree.remove_own_directory(path));
  return tree.remove_directory(path);
}

Status rename_far(const std::string& from, const std::string& to, unsigned flags) {
  if ((flags & ~unsigned{RENAME_NOREPLACE}) != 0) return refusal(EINVAL);
  if ((flags & RENAME_NOREPLACE) != 0 && exists_at(to)) return refusal(EEXIST);
  return rename_file(from, to);
}

}  // namespace shima::fuse
