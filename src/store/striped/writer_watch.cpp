#include "store/striped/writer_watch.h"

namespace shima {
namespace {

std::unexpected<Error> in_use(const std::string& path) {
  return fail(Code::file_in_use,
              path + " is open for writing in another process; try again when it is closed");
}

}  // namespace

Result<WriterWatch> WriterWatch::begin(const std::vector<Part>& parts) {
  WriterWatch watch;
  for (const Part& part : parts) {
    const auto sole = watch.files_.empty() ? TargetFiles::Sole::yes : TargetFiles::Sole::no;
    SHIMA_TRY_ASSIGN(auto lease, part.target->files().lease(part.name, sole));
    watch.files_.push_back({std::move(lease), part.path()});
  }
  SHIMA_TRY_ASSIGN(watch.stamp_, watch.stamp_now());
  return watch;
}

Status WriterWatch::still_alone() const {
  for (const Watched& file : files_) {
    SHIMA_TRY_ASSIGN(const bool holds, file.lease->holds());
    if (!holds) return in_use(file.path);
  }
  SHIMA_TRY_ASSIGN(const std::uint64_t now, stamp_now());
  if (now != stamp_) return in_use(files_.front().path);
  return {};
}

Result<std::uint64_t> WriterWatch::stamp_now() const {
  std::uint64_t stamp = 0xcbf29ce484222325U;
  const auto add = [&](std::uint64_t number) { stamp = (stamp ^ number) * 0x100000001b3U; };
  for (const Watched& file : files_) {
    SHIMA_TRY_ASSIGN(const struct stat facts, file.lease->facts());
    add(static_cast<std::uint64_t>(facts.st_size));
    add(static_cast<std::uint64_t>(facts.st_mtim.tv_sec));
    add(static_cast<std::uint64_t>(facts.st_mtim.tv_nsec));
  }
  return stamp;
}

}  // namespace shima
