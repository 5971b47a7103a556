#include "store/restripe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <thread>

#include "store/intents.h"
#include "store/master_store.h"
#include "store/parts.h"
#include "store/writer_watch.h"

namespace shima {
namespace {

// --- the record ---------------------------------------------------------------------------------

// The new master file, and a line "copied BYTES STAMP".
constexpr std::string_view record_key = "\ncopied ";

std::string encode_record(const UnfinishedRestripe& record) {
  return encode_master(record.goal) +
         fmt::format("copied {} {:x}\n", record.done.value, record.stamp);
}

std::optional<UnfinishedRestripe> decode_record(std::string_view text) {
  const std::size_t at = text.rfind(record_key);
  if (at == std::string_view::npos || !text.ends_with('\n')) return {};
  auto goal = decode_master(text.substr(0, at + 1));
  if (!goal) return {};
  UnfinishedRestripe record{*std::move(goal), {}, 0};
  const std::string_view line = text.substr(at + record_key.size());
  const std::size_t space = std::min(line.find(' '), line.size() - 1);
  const char* const begin = line.data();
  const char* const end = line.data() + line.size() - 1;  // the newline
  const auto [after_done, bad_done] = std::from_chars(begin, begin + space, record.done.value);
  if (bad_done != std::errc{} || after_done != begin + space || record.done.value < 0) return {};
  const char* const stamp = std::min(begin + space + 1, end);
  const auto [last, bad_stamp] = std::from_chars(stamp, end, record.stamp, 16);
  if (bad_stamp != std::errc{} || last != end) return {};
  return record;
}

Result<Target> home_of_record(const MasterFile& master, const std::string& path) {
  return Target::open(master.targets().front(), path, Target::Purpose::use);
}

Status write_record(const Target& home, const MasterFile& source,
                    const UnfinishedRestripe& record) {
  const std::string name = record_name(source.id);
  return write_whole(home.fd(), name, encode_record(record), 0600, home.directory() + "/" + name);
}

std::unexpected<Error> moved_away(const std::string& path) {
  return fail(Code::file_in_use, path + " was renamed or replaced while it was restriped");
}

// Also as what has taken its place already.
bool still_stands(const MasterFile& source, const std::string& path) {
  const auto now = read_master(path);
  if (!now) return true;  // which says what is wrong
  if (!*now) return false;
  const auto* replaced = (*now)->intent ? std::get_if<ReplaceIntent>(&*(*now)->intent) : nullptr;
  return (*now)->id == source.id || (replaced != nullptr && replaced->from == source.id);
}

// --- one restripe -------------------------------------------------------------------------------

// A file being restriped, from the examination of the old one to the switch.
class Restriping {
 public:
  static Status run(const std::string& path, const MasterFile& source,
                    const RestripeRequest& request, const CopyProgress& progress) {
    SHIMA_TRY_ASSIGN(const auto old_targets,
                     open_targets(source.targets(), path, Target::Purpose::use));
    std::vector<Part> subfiles = parts_of(source, old_targets);
    subfiles.resize(source.targets().size());
    SHIMA_TRY_ASSIGN(WriterWatch watch, WriterWatch::begin(subfiles));
    SHIMA_TRY_ASSIGN(Target home, home_of_record(source, path));
    Restriping work(path, source, std::move(watch), std::move(home));
    const Status done = work.carry_out(request, progress);
    if (done || still_stands(source, path)) return done;
    work.clean_up();
    return moved_away(path);
  }

 private:
  Restriping(std::string path, MasterFile source, WriterWatch watch, Target home)
      : path_(std::move(path)),
        source_(std::move(source)),
        watch_(std::move(watch)),
        home_(std::move(home)) {}

  Status carry_out(const RestripeRequest& request, const CopyProgress& progress) {
    SHIMA_TRY(prepare(request.regions));
    SHIMA_TRY(copy(progress, request.record_bytes));
    return switch_over();
  }

  // Nobody goes on with it: whoever moved the file has dropped what there was, and we may have
  // written more since. (As long as we watch the subfiles, nobody else restripes them.)
  void clean_up() const {
    if (!new_targets_.empty()) std::ignore = remove_parts(record_.goal, new_targets_);
    ::unlinkat(home_.fd(), record_name(source_.id).c_str(), 0);
  }

  // Finds what an earlier call has made, or makes everything.
  Status prepare(const std::vector<StripedRegion>& regions) {
    SHIMA_TRY_ASSIGN(const FolderLock lock, lock_folder());
    SHIMA_TRY_ASSIGN(auto found, unfinished_restripe(source_, path_));
    if (found && found->goal.regions == regions && found->stamp == watch_.stamp()) {
      record_ = *std::move(found);
      SHIMA_TRY_ASSIGN(new_targets_,
                       open_targets(record_.goal.targets(), path_, Target::Purpose::create));
      if (LogicalFile::open_parts(record_.goal, {.path = path_, .read = true, .write = true}))
        return {};
    }
    SHIMA_TRY(drop_restripe(source_, path_));
    return make(regions);
  }

  Status make(const std::vector<StripedRegion>& regions) {
    record_ = {{{}, regions, {}}, {0}, watch_.stamp()};
    SHIMA_TRY_ASSIGN(record_.goal.id, new_id());
    SHIMA_TRY(layout_of(record_.goal));
    SHIMA_TRY_ASSIGN(new_targets_,
                     open_targets(record_.goal.targets(), path_, Target::Purpose::create));
    SHIMA_TRY(write_record(home_, source_, record_));
    struct stat facts{};
    if (::stat(path_.c_str(), &facts) != 0) return failed("examining", path_);
    // Its copies are not for rebuilding a file before it is one.
    MasterFile unborn = record_.goal;
    unborn.intent = RemoveIntent{};
    SHIMA_TRY(make_parts(unborn, path_, facts.st_mode & 0777U, new_targets_));
    return adopt_access();
  }

  // As open to others as the file is, and theirs whose it is, as far as we may.
  Status adopt_access() {
    struct stat facts{};
    if (::stat(path_.c_str(), &facts) != 0) return failed("examining", path_);
    for (const Part& part : parts_of(record_.goal, new_targets_)) {
      const char* const name = part.name.c_str();
      std::ignore = ::fchownat(part.target->fd(), name, facts.st_uid, facts.st_gid, 0);
      std::ignore = ::fchmodat(part.target->fd(), name, facts.st_mode & 0777U, 0);
    }
    return {};
  }

  Status copy(const CopyProgress& progress, std::uint64_t record_bytes) {
    SHIMA_TRY_ASSIGN(auto from, LogicalFile::open_parts(source_, {.path = path_, .read = true}));
    SHIMA_TRY_ASSIGN(auto to, LogicalFile::open_parts(
                                  record_.goal, {.path = path_, .read = true, .write = true}));
    SHIMA_TRY_ASSIGN(const FileOffset end, from.size());
    FileOffset recorded = record_.done;
    const auto step = [&](FileOffset done, FileOffset goal) -> Status {
      SHIMA_TRY(watch_.still_alone());
      if (progress) SHIMA_TRY(progress(done, goal));
      if (as_unsigned(done - recorded) < record_bytes) return {};
      SHIMA_TRY(to.sync());
      recorded = record_.done = done;
      return write_record(home_, source_, record_);
    };
    SHIMA_TRY(copy_data(from, to, {record_.done, end}, step));
    SHIMA_TRY(truncate_subfiles(record_.goal, as_unsigned(end.value), new_targets_));
    return to.sync();
  }

  // Whoever has the folder's lock may be waiting for our leases, so we never wait for both.
  Result<FolderLock> lock_folder() const {
    while (true) {
      auto lock = FolderLock::try_take(path_);
      if (lock || lock.error().code != Code::file_in_use) return lock;
      SHIMA_TRY(watch_.still_alone());
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }

  Status switch_over() {
    SHIMA_TRY_ASSIGN(const FolderLock lock, lock_folder());
    SHIMA_TRY_ASSIGN(const auto now, read_master(path_));
    SHIMA_TRY_ASSIGN(const auto record, unfinished_restripe(source_, path_));
    if (!now || *now != source_ || !record || record->goal.id != record_.goal.id)
      return moved_away(path_);
    SHIMA_TRY(write_copies(record_.goal, path_, 0600, new_targets_));
    SHIMA_TRY(adopt_access());
    MasterFile next = record_.goal;
    next.intent = ReplaceIntent{source_.id, source_.targets()};
    SHIMA_TRY(watch_.still_alone());
    SHIMA_TRY(put_master(path_, next));
    return finish_intent(path_, next);
  }

  std::string path_;
  MasterFile source_;
  WriterWatch watch_;
  Target home_;
  std::vector<Target> new_targets_;
  UnfinishedRestripe record_{};
};

}  // namespace

Result<std::optional<UnfinishedRestripe>> unfinished_restripe(const MasterFile& master,
                                                              const std::string& path) {
  SHIMA_TRY_ASSIGN(const Target home, home_of_record(master, path));
  const std::string name = record_name(master.id);
  const UniqueFd fd(
      ::openat(home.fd(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd && errno == ENOENT) return std::nullopt;
  if (!fd) return failed("reading", home.directory() + "/" + name);
  SHIMA_TRY_ASSIGN(const std::string text,
                   read_up_to(fd.get(), 2 * largest_master_bytes, home.directory() + "/" + name));
  return decode_record(text);
}

Status drop_restripe(const MasterFile& master, const std::string& path) {
  SHIMA_TRY_ASSIGN(const auto found, unfinished_restripe(master, path));
  if (found) {
    SHIMA_TRY_ASSIGN(const auto targets,
                     open_targets(found->goal.targets(), path, Target::Purpose::use));
    SHIMA_TRY(remove_parts(found->goal, targets));
  }
  SHIMA_TRY_ASSIGN(const Target home, home_of_record(master, path));
  if (::unlinkat(home.fd(), record_name(master.id).c_str(), 0) != 0 && errno != ENOENT)
    return failed("removing", home.directory() + "/" + record_name(master.id));
  return {};
}

Status restripe(const RestripeRequest& request, const CopyProgress& progress) {
  SHIMA_TRY_ASSIGN(const auto master, read_settled_master(request.path));
  if (!master)
    return fail(Code::bad_argument,
                request.path + " is no striped file; shima cp makes one of a plain file");
  if (master->regions == request.regions) return {};
  SHIMA_TRY_ASSIGN(const std::string path, real_path_of(request.path));
  return Restriping::run(path, *master, request, progress);
}

}  // namespace shima
