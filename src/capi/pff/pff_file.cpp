#include <algorithm>

#include "capi/pff/errors.h"
#include "capi/pff/handles.h"
#include "capi/pff/striping_text.h"
#include "file/hints/hint_sources.h"
#include "group/solo_channel.h"
#include "observe/board.h"
#include "observe/trace_log.h"
#include "store/striped/master_store.h"
#include "store/target/paths.h"

namespace shima::capi {
namespace {

struct Opening {
  const char* path;
  int flags;
  const pff_striping* striping;
  const char* hints;
};

Result<AccessMode> mode_of(int flags) {
  constexpr int known = PFF_READ | PFF_WRITE | PFF_CREATE | PFF_EXCLUSIVE;
  if ((flags & ~known) != 0) return fail(Code::bad_access_mode, "opening a file: unknown flags");
  const AccessMode mode{.read = (flags & PFF_READ) != 0,
                        .write = (flags & PFF_WRITE) != 0,
                        .create = (flags & PFF_CREATE) != 0,
                        .exclusive = (flags & PFF_EXCLUSIVE) != 0};
  if (!mode.read && !mode.write)
    return fail(Code::bad_access_mode, "opening a file: neither PFF_READ nor PFF_WRITE");
  if (mode.create && !mode.write)
    return fail(Code::bad_access_mode, "opening a file: PFF_CREATE needs PFF_WRITE");
  if (mode.exclusive && !mode.create)
    return fail(Code::bad_access_mode, "opening a file: PFF_EXCLUSIVE needs PFF_CREATE");
  return mode;
}

// An invalid explicit striping is an error; invalid hints are ignored.
Result<OpenRequest> request_of(const Opening& opening) {
  if (opening.path == nullptr || *opening.path == '\0')
    return fail(Code::bad_file_name, "opening a file: the name is NULL or empty");
  OpenRequest request;
  SHIMA_TRY_ASSIGN(request.path, path_meant_by(opening.path));
  SHIMA_TRY_ASSIGN(request.mode, mode_of(opening.flags));
  Hints base;
  if (opening.striping != nullptr) {
    request.plain = opening.striping->region_count == 0;
    SHIMA_TRY_ASSIGN(base.shima_regions, text_of(*opening.striping));
  }
  const auto settings = parse_hint_list(opening.hints == nullptr ? "" : opening.hints);
  request.hints = resolve(base, settings);
  return request;
}

Status open(const Opening& opening, Result<std::unique_ptr<Channel>> channel, bool in_set,
            pff_file** file) {
  if (!channel) return std::unexpected(channel.error());
  show_board({.kind = BoardKind::files});
  start_trace(-1, -1);
  auto request = caught([&] { return request_of(opening); });
  if (request && file == nullptr)
    request = fail(Code::bad_argument, "opening a file: the result pointer is NULL");
  auto made = caught([]() -> Result<std::unique_ptr<pff_file>> {
    auto handle = std::make_unique<pff_file>();
    handle->together.make_reserve();
    return handle;
  });
  if (!made && request) request = std::unexpected(made.error());
  const auto nothing_more = [](File&) { return Status{}; };
  SHIMA_TRY_ASSIGN(auto opened, File::open(*std::move(channel), request, nothing_more));
  (*made)->file = std::move(opened);
  (*made)->in_set = in_set;
  *file = made->release();
  return {};
}

// Operations on the whole file, which run when no collective request is pending.
template <class Body>
auto with_file(pff_file* file, Body body) noexcept {
  return guarded([&]() -> decltype(body(*file->file)) {
    if (file == nullptr) return fail(Code::bad_argument, "no file");
    file->together.drain();
    return body(*file->file);
  });
}

Result<FileOffset> checked_size(const File& file, std::int64_t size) {
  if (!file.mode().write)
    return fail(Code::bad_access_mode,
                "setting the size of a file that was opened without PFF_WRITE");
  if (size < 0) return fail(Code::bad_argument, "the size of a file cannot be negative");
  return FileOffset{size};
}

}  // namespace
}  // namespace shima::capi

using shima::capi::guarded;
using shima::capi::with_file;

int pff_open(const char* path, int flags, const pff_striping* striping, const char* hints,
             pff_file** file) noexcept {
  return guarded([&] {
    return shima::capi::open({path, flags, striping, hints}, std::make_unique<shima::SoloChannel>(),
                             false, file);
  });
}

int pff_open_in(pff_set* set, const char* path, int flags, const pff_striping* striping,
                const char* hints, pff_file** file) noexcept {
  return guarded([&]() -> shima::Status {
    if (set == nullptr)
      return shima::fail(shima::Code::bad_argument, "opening a file: the set is NULL");
    return shima::capi::open({path, flags, striping, hints}, set->members->make_channel(), true,
                             file);
  });
}

int pff_close(pff_file* file) noexcept {
  return guarded([&]() -> shima::Status {
    if (file == nullptr) return shima::fail(shima::Code::bad_argument, "no file");
    const std::unique_ptr<pff_file> closing(file);
    closing->alone.drain();
    closing->together.drain();
    return closing->file->close();
  });
}

int64_t pff_size(pff_file* file) noexcept {
  return guarded([&]() -> shima::Result<std::int64_t> {
    if (file == nullptr) return shima::fail(shima::Code::bad_argument, "no file");
    SHIMA_TRY_ASSIGN(const shima::FileOffset size, file->file->size());
    return size.value;
  });
}

int pff_resize(pff_file* file, int64_t size) noexcept {
  return with_file(file, [=](shima::File& opened) {
    return opened.set_size(shima::caught([&] { return shima::capi::checked_size(opened, size); }));
  });
}

int pff_reserve(pff_file* file, int64_t size) noexcept {
  return with_file(file, [=](shima::File& opened) {
    return opened.preallocate(
        shima::caught([&] { return shima::capi::checked_size(opened, size); }));
  });
}

int pff_sync(pff_file* file) noexcept {
  return with_file(file, [](shima::File& opened) { return opened.sync(); });
}

int pff_remove(const char* path) noexcept {
  return guarded([&]() -> shima::Status {
    if (path == nullptr || *path == '\0')
      return shima::fail(shima::Code::bad_file_name, "removing a file: the name is NULL or empty");
    SHIMA_TRY_ASSIGN(const std::string meant, shima::path_meant_by(path));
    return shima::remove_file(meant);
  });
}
