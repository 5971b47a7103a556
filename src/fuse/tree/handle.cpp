#include "fuse/tree/handle.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "fuse/tree/errors.h"
#include "store/striped/master_store.h"
#include "store/subfile/close_to_open.h"

namespace shima::fuse {

Result<std::unique_ptr<Handle>> Handle::open(Tree& tree, std::shared_ptr<Node> node, int flags,
                                             UniqueFd created) {
  if (node->kind == Node::Kind::damaged)
    return fail(Code::bad_file,
                "opening a striped file whose master file is damaged; shima fsck "
                "reports details");
  std::unique_ptr<Handle> handle(new Handle(tree, std::move(node), flags));
  if (handle->node_->kind == Node::Kind::striped) {
    SHIMA_TRY(handle->open_striped());
  } else {
    SHIMA_TRY(handle->open_plain(std::move(created)));
  }
  SHIMA_TRY(handle->begin_watching());
  return handle;
}

Status Handle::open_plain(UniqueFd created) {
  fd_ = std::move(created);
  if (fd_) return {};
  // Direct I/O needs aligned memory and lengths, which requests do not have.
  constexpr int not_wanted =
      O_CREAT | O_EXCL | O_TRUNC | O_NOFOLLOW | O_DIRECT | O_NOATIME | O_APPEND;
  fd_ = UniqueFd(::open(node_->path().c_str(), (flags_ & ~not_wanted) | O_CLOEXEC));
  return done(fd_.get());
}

Status Handle::open_striped() {
  Place place;
  {
    const std::lock_guard lock(node_->parts().mutex);
    if (node_->parts().removed) return refusal(ESTALE);
    place = node_->parts().place;
  }
  const int access = flags_ & O_ACCMODE;
  SHIMA_TRY_ASSIGN(LogicalFile file, LogicalFile::open({.path = place.path(),
                                                        .read = access != O_WRONLY,
                                                        .write = access != O_RDONLY}));
  // Another file may have taken the name since the look-up.
  SHIMA_TRY_ASSIGN(const auto striped, tree_.description(*node_));
  if (file.master() == nullptr || file.master()->id != striped->master.id) {
    std::ignore = file.close();
    return refusal(ESTALE);
  }
  SHIMA_TRY(tree_.check_owner(*node_, file));
  file_.emplace(std::move(file));
  return {};
}

// The first opener starts the watch for all.
Status Handle::begin_watching() {
  Freshness& fresh = node_->freshness();
  const std::lock_guard lock(fresh.opening);
  if (fresh.opens == 0) {
    std::vector<UniqueFd> subfiles;
    if (file_) {
      SHIMA_TRY_ASSIGN(subfiles, tree_.open_subfiles(*node_));
    }
    std::vector<int> fds;
    for (const UniqueFd& fd : subfiles) fds.push_back(fd.get());
    if (!file_) fds.push_back(fd_.get());
    // I/O nodes report no changes: times and sizes decide, as on other network file systems.
    const bool on_node = fds.empty();
    fresh.unnoticed = on_node || !std::ranges::all_of(fds, is_local);
    if (on_node) {
      fresh.watched = true;
    } else {
      std::ignore = tree_.watcher().watch(node_, fds);
    }
    const std::lock_guard parts_lock(node_->parts().mutex);
    node_->parts().subfiles = std::move(subfiles);
  }
  ++fresh.opens;
  if (reads()) ++fresh.readers;
  counted_ = true;
  return {};
}

Handle::~Handle() {
  if (file_) std::ignore = file_->close();
  if (!counted_) return;
  Freshness& fresh = node_->freshness();
  const std::lock_guard lock(fresh.opening);
  if (reads()) --fresh.readers;
  if (--fresh.opens > 0) return;
  tree_.watcher().unwatch(*node_);
  const std::lock_guard parts_lock(node_->parts().mutex);
  node_->parts().subfiles.clear();
}

// A file that is open only for writing cannot be mapped. (When appending, the kernel may assume a
// wrong end of the file and put the bytes into a wrong page, but that page is dropped before the
// next read, like all written pages.)
bool Handle::past_cache() const {
  return !reads() || (flags_ & O_DIRECT) != 0 || !node_->freshness().watched;
}

Result<std::uint64_t> Handle::read(void* data, std::uint64_t len_bytes, FileOffset offset) {
  if (file_) return file_->read(offset, data, len_bytes);
  std::uint64_t moved = 0;
  while (moved < len_bytes) {
    const ssize_t n = ::pread(fd_.get(), static_cast<char*>(data) + moved, len_bytes - moved,
                              offset.value + as_signed(moved));
    if (n < 0 && errno == EINTR) continue;
    SHIMA_TRY(done(static_cast<int>(std::min<ssize_t>(n, 0))));
    if (n == 0) break;
    moved += as_unsigned(n);
  }
  return moved;
}

// A page of a mapping has its own offset, even if the descriptor appends.
Status Handle::write(const void* data, std::uint64_t len_bytes, FileOffset offset, bool is_page) {
  const bool appends = (flags_ & O_APPEND) != 0 && !is_page;
  if (file_) {
    if (offset.value > INT64_MAX - as_signed(len_bytes)) return refusal(EFBIG);
    SHIMA_TRY(appends ? file_->append(data, len_bytes, node_->freshness().appending)
                      : file_->write(offset, data, len_bytes));
    return (flags_ & O_DSYNC) != 0 ? sync(true) : Status{};
  }
  std::uint64_t moved = 0;
  while (moved < len_bytes) {
    const iovec piece{const_cast<char*>(static_cast<const char*>(data)) + moved, len_bytes - moved};
    const ssize_t n =
        ::pwritev2(fd_.get(), &piece, 1, offset.value + as_signed(moved), appends ? RWF_APPEND : 0);
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) return refusal(EIO);  // else the loop would not end
    SHIMA_TRY(done(static_cast<int>(std::min<ssize_t>(n, 0))));
    moved += as_unsigned(n);
  }
  return {};
}

Status Handle::sync(bool data_only) {
  if (!file_) return done((data_only ? ::fdatasync : ::fsync)(fd_.get()));
  const std::lock_guard lock(syncing_);
  return file_->sync();
}

Status Handle::truncate(FileOffset size) {
  if (!file_) return done(::ftruncate(fd_.get(), size.value));
  std::string path;
  {
    const std::lock_guard lock(node_->parts().mutex);
    if (!node_->parts().removed) path = node_->parts().place.path();
  }
  // The name may have been removed outside the mount.
  Status status = fail(Code::no_such_file, "");
  if (!path.empty()) status = truncate_striped(path, as_unsigned(size.value), &file_->master()->id);
  if (!status &&
      (status.error().code == Code::no_such_file || status.error().code == Code::file_in_use))
    return file_->truncate_unnamed(size);
  return status;
}

Status Handle::allocate(int mode, off_t offset, off_t len) {
  if (!file_) return done(::fallocate(fd_.get(), mode, offset, len));
  if (mode != 0) return refusal(EOPNOTSUPP);
  if (len <= 0 || offset < 0) return refusal(EINVAL);
  if (offset > INT64_MAX - len) return refusal(EFBIG);
  return file_->preallocate(FileOffset{offset + len});
}

// A striped file reports no holes: it is data up to its end.
Result<off_t> Handle::seek(off_t offset, int whence) {
  if (!file_) {
    const off_t at = ::lseek(fd_.get(), offset, whence);
    SHIMA_TRY(done(at < 0 ? -1 : 0));
    return at;
  }
  SHIMA_TRY_ASSIGN(const FileOffset end, file_->size());
  if (offset < 0 || offset >= end.value) return refusal(ENXIO);
  return whence == SEEK_DATA ? offset : end.value;
}

// Errors of writes that a subfile's file system keeps until it is closed come from publish().
Status Handle::flush() {
  if (file_) {
    const std::lock_guard lock(syncing_);
    return file_->publish();
  }
  const int copy = ::dup(fd_.get());
  SHIMA_TRY(done(copy));
  return done(::close(copy));
}

}  // namespace shima::fuse
