// Lists directories.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <mutex>
#include <vector>

#include "fuse/calls/mount.h"

namespace shima::fuse {
namespace {

// An open directory; the kernel gives the position with each call.
struct Listing {
  explicit Listing(DIR* opened) : directory(opened) {}
  Listing(const Listing&) = delete;
  Listing& operator=(const Listing&) = delete;
  ~Listing() { ::closedir(directory); }

  std::mutex mutex;
  DIR* directory;
  off_t at = 0;
  dirent* entry = nullptr;  // read, but not yet returned
};

Listing& listing_in(const fuse_file_info* info) { return *reinterpret_cast<Listing*>(info->fh); }

void open_directory(fuse_req_t request, fuse_ino_t number, fuse_file_info* info) {
  answer(request, [&]() -> Status {
    SHIMA_TRY_ASSIGN(const auto node, node_of(request, number));
    const int fd = ::openat(node->fd(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    SHIMA_TRY(done(fd));
    DIR* const directory = ::fdopendir(fd);
    SHIMA_TRY(done(directory == nullptr ? -1 : 0));
    auto listing = std::make_unique<Listing>(directory);
    info->fh = reinterpret_cast<std::uint64_t>(listing.get());
    if (fuse_reply_open(request, info) == 0) std::ignore = listing.release();
    return {};
  });
}

// Fills the buffer with entries while there is room; returns the bytes used.
Result<std::size_t> fill(fuse_req_t request, Listing& listing, std::vector<char>& buffer) {
  std::size_t used = 0;
  for (;;) {
    if (listing.entry == nullptr) {
      errno = 0;
      listing.entry = ::readdir(listing.directory);
      if (listing.entry == nullptr) {
        if (errno != 0 && used == 0) return refusal(errno);
        return used;
      }
    }
    const dirent& entry = *listing.entry;
    if (!is_hidden(entry.d_name)) {
      struct stat facts{};
      facts.st_ino = entry.d_ino;
      facts.st_mode = DTTOIF(entry.d_type);
      const std::size_t needed = fuse_add_direntry(
          request, buffer.data() + used, buffer.size() - used, entry.d_name, &facts, entry.d_off);
      if (needed > buffer.size() - used) return used;
      used += needed;
    }
    listing.at = entry.d_off;
    listing.entry = nullptr;
  }
}

Result<std::size_t> fill_from(fuse_req_t request, Listing& listing, off_t offset,
                              std::vector<char>& buffer) {
  const std::lock_guard lock(listing.mutex);
  if (offset != listing.at) {
    ::seekdir(listing.directory, offset);
    listing.entry = nullptr;
    listing.at = offset;
  }
  return fill(request, listing, buffer);
}

void read_directory(fuse_req_t request, fuse_ino_t, std::size_t len_bytes, off_t offset,
                    fuse_file_info* info) {
  answer(request, [&]() -> Status {
    std::vector<char> buffer(len_bytes);
    SHIMA_TRY_ASSIGN(const std::size_t used, fill_from(request, listing_in(info), offset, buffer));
    // After the reply, the listing may be released.
    fuse_reply_buf(request, buffer.data(), used);
    return {};
  });
}

void release_directory(fuse_req_t request, fuse_ino_t, fuse_file_info* info) {
  delete &listing_in(info);
  fuse_reply_err(request, 0);
}

void sync_directory(fuse_req_t request, fuse_ino_t, int, fuse_file_info* info) {
  answer_done(request, [&] { return done(::fsync(::dirfd(listing_in(info).directory))); });
}

}  // namespace

void add_directory_calls(fuse_lowlevel_ops& calls) {
  calls.opendir = open_directory;
  calls.readdir = read_directory;
  calls.releasedir = release_directory;
  calls.fsyncdir = sync_directory;
}

}  // namespace shima::fuse
