// Open, read, write.
#include <fcntl.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "base/page_size.h"
#include "fuse/calls/create.h"
#include "fuse/calls/mount.h"
#include "fuse/calls/read_ahead.h"
#include "fuse/tree/handle.h"

namespace shima::fuse {
namespace {

Handle& handle_in(const fuse_file_info* info) { return *reinterpret_cast<Handle*>(info->fh); }

// The kernel drops cached pages of the file at each open.
void show_handle(fuse_file_info& info, Handle& handle) {
  info.fh = reinterpret_cast<std::uint64_t>(&handle);
  info.keep_cache = 0;
  info.direct_io = handle.past_cache() ? 1 : 0;
  info.noflush = 0;
}

void open(fuse_req_t request, fuse_ino_t number, fuse_file_info* info) {
  answer(request, [&]() -> Status {
    Mount& mount = mount_of(request);
    std::call_once(mount.tuned, [&] { enlarge_read_ahead(mount.options.mount_point); });
    SHIMA_TRY_ASSIGN(auto node, node_of(request, number));
    SHIMA_TRY_ASSIGN(auto handle, Handle::open(mount.tree, std::move(node), info->flags));
    show_handle(*info, *handle);
    if (fuse_reply_open(request, info) == 0) std::ignore = handle.release();
    return {};
  });
}

void create(fuse_req_t request, fuse_ino_t directory_number, const char* name, mode_t mode,
            fuse_file_info* info) {
  answer(request, [&]() -> Status {
    Tree& tree = tree_of(request);
    SHIMA_TRY_ASSIGN(const auto directory, node_of(request, directory_number));
    SHIMA_TRY_ASSIGN(auto handle,
                     create_file(tree, *fuse_req_ctx(request), directory, name, info->flags, mode));
    show_handle(*info, *handle);
    const auto entry = entry_of(tree, handle->node());
    const bool told = entry && fuse_reply_create(request, &*entry, info) == 0;
    if (!told) tree.nodes().forget(handle->node()->number, 1);
    if (!entry) return std::unexpected(entry.error());
    if (told) std::ignore = handle.release();
    return {};
  });
}

void release(fuse_req_t request, fuse_ino_t, fuse_file_info* info) {
  delete &handle_in(info);
  fuse_reply_err(request, 0);
}

// One per serving thread, kept for its next request.
void* buffer_of(std::size_t len_bytes) {
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  const std::size_t page_bytes = page_size();
  static thread_local std::unique_ptr<void, Free> buffer;
  static thread_local std::size_t capacity = 0;
  if (len_bytes > capacity) {
    capacity =
        (std::max<std::size_t>(len_bytes, 1 << 20) + page_bytes - 1) / page_bytes * page_bytes;
    buffer.reset(std::aligned_alloc(page_bytes, capacity));
    if (!buffer) capacity = 0;
  }
  if (!buffer) throw std::bad_alloc();
  return buffer.get();
}

void read(fuse_req_t request, fuse_ino_t, std::size_t len_bytes, off_t offset,
          fuse_file_info* info) {
  answer(request, [&]() -> Status {
    void* const data = buffer_of(len_bytes);
    SHIMA_TRY_ASSIGN(const std::uint64_t found,
                     handle_in(info).read(data, len_bytes, FileOffset{offset}));
    fuse_reply_buf(request, static_cast<const char*>(data), found);
    return {};
  });
}

void write(fuse_req_t request, fuse_ino_t, const char* data, std::size_t len_bytes, off_t offset,
           fuse_file_info* info) {
  answer(request, [&]() -> Status {
    SHIMA_TRY(handle_in(info).write(data, len_bytes, FileOffset{offset}, info->writepage != 0));
    fuse_reply_write(request, len_bytes);
    return {};
  });
}

void flush(fuse_req_t request, fuse_ino_t, fuse_file_info* info) {
  answer_done(request, [&] { return handle_in(info).flush(); });
}

void sync(fuse_req_t request, fuse_ino_t, int data_only, fuse_file_info* info) {
  answer_done(request, [&] { return handle_in(info).sync(data_only != 0); });
}

void allocate(fuse_req_t request, fuse_ino_t, int mode, off_t offset, off_t len,
              fuse_file_info* info) {
  answer_done(request, [&] { return handle_in(info).allocate(mode, offset, len); });
}

void seek(fuse_req_t request, fuse_ino_t, off_t offset, int whence, fuse_file_info* info) {
  answer(request, [&]() -> Status {
    SHIMA_TRY_ASSIGN(const off_t at, handle_in(info).seek(offset, whence));
    fuse_reply_lseek(request, at);
    return {};
  });
}

}  // namespace

void add_data_calls(fuse_lowlevel_ops& calls) {
  calls.open = open;
  calls.create = create;
  calls.release = release;
  calls.read = read;
  calls.write = write;
  calls.flush = flush;
  calls.fsync = sync;
  calls.fallocate = allocate;
  calls.lseek = seek;
}

}  // namespace shima::fuse
