#include "store/striped/restripe.h"

#include <sys/stat.h>

#include <chrono>
#include <thread>

#include "store/striped/belonging.h"
#include "store/striped/intents.h"
#include "store/striped/master_store.h"
#include "store/striped/parts.h"
#include "store/striped/writer_watch.h"
#include "store/target/paths.h"
#include "store/target/text_file.h"

namespace shima {
namespace {

std::unexpected<Error> moved_away(const std::string& path) {
  return fail(Code::file_in_use, path + " was renamed or replaced while it was restriped");
}

// A file being restriped, from the examination of the old one to the switch.
class Restriping {
 public:
  static Status run(const std::string& path, const MasterFile& source,
                    const RestripeRequest& request, const CopyProgress& progress) {
    SHIMA_TRY_ASSIGN(const auto old_targets,
                     open_targets(source.targets(), path, Target::Purpose::use));
    SHIMA_TRY(check_own_parts(source, path, old_targets));
    std::vector<Part> subfiles = parts_of(source, old_targets);
    subfiles.resize(source.targets().size());
    SHIMA_TRY_ASSIGN(WriterWatch watch, WriterWatch::begin(subfiles));
    SHIMA_TRY_ASSIGN(Target home, home_of_restripe_record(source, path));
    Restriping work(path, source, std::move(watch), std::move(home));
    const Status done = work.carry_out(request, progress);
    return done ? done : work.give_up(done);
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

  // Keeps only what the next call can continue from.
  Status give_up(const Status& why) const {
    const auto now = read_master(path_);
    if (!now) return why;  // it states the cause
    const bool stands = *now && (*now)->id == source_.id;
    if (!stands && switching_) return why;  // the new subfiles may hold the only data
    // The process that moved the file dropped the record, and we may have written more since.
    if (!stands || record_.done.value == 0) clean_up();
    return stands ? why : moved_away(path_);
  }

  // While we watch the subfiles no other process restripes them, so that no lock is needed.
  void clean_up() const {
    if (new_targets_.empty()) return;  // an earlier call created what exists
    if (remove_parts(record_.goal, new_targets_))
      std::ignore = home_.files().remove(record_name(source_.id));
  }

  // Finds the files of an earlier call, or creates all of them.
  Status prepare(const std::vector<StripedRegion>& regions) {
    SHIMA_TRY_ASSIGN(const DirectoryLock lock, lock_directory());
    SHIMA_TRY_ASSIGN(auto found, unfinished_restripe(source_, path_));
    if (found && found->goal.regions == regions && found->stamp == watch_.stamp()) {
      record_ = *std::move(found);
      SHIMA_TRY_ASSIGN(new_targets_,
                       open_targets(record_.goal.targets(), path_, Target::Purpose::create));
      if (LogicalFile::open_parts(record_.goal, {.path = path_, .read = true, .write = true},
                                  source_))
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
    SHIMA_TRY(write_restripe_record(home_, source_, record_));
    SHIMA_TRY_ASSIGN(const struct stat facts,
                     tree_at(path_).examine(path_, FileTree::Links::follow));
    // Until the switch, the copies must not be used to rebuild a file.
    MasterFile unborn = record_.goal;
    unborn.intent = RemoveIntent{};
    SHIMA_TRY(make_parts(unborn, path_, facts.st_mode & 0777U, new_targets_));
    return adopt_access();
  }

  // Gives the new parts the owner and permissions of the file, as far as permitted.
  Status adopt_access() {
    SHIMA_TRY_ASSIGN(const struct stat facts,
                     tree_at(path_).examine(path_, FileTree::Links::follow));
    for (const Part& part : parts_of(record_.goal, new_targets_))
      std::ignore = part.target->files().give_new(part.name, facts);
    return {};
  }

  Status copy(const CopyProgress& progress, std::uint64_t record_bytes) {
    SHIMA_TRY_ASSIGN(auto from,
                     LogicalFile::open_parts(source_, {.path = path_, .read = true}, source_));
    SHIMA_TRY_ASSIGN(
        auto to, LogicalFile::open_parts(record_.goal, {.path = path_, .read = true, .write = true},
                                         source_));
    SHIMA_TRY_ASSIGN(const FileOffset end, from.size());
    FileOffset recorded = record_.done;
    const auto step = [&](FileOffset done, FileOffset goal) -> Status {
      SHIMA_TRY(watch_.still_alone());
      if (progress) SHIMA_TRY(progress(done, goal));
      if (as_unsigned(done - recorded) < record_bytes) return {};
      SHIMA_TRY(to.sync());
      recorded = done;
      return record_progress(done);
    };
    SHIMA_TRY(copy_data(from, to, {record_.done, end}, step));
    SHIMA_TRY(truncate_subfiles(record_.goal, as_unsigned(end.value), new_targets_));
    return to.sync();
  }

  // Fails if another process dropped the record; it may also have moved the file away and back.
  Status record_progress(FileOffset done) {
    SHIMA_TRY_ASSIGN(const DirectoryLock lock, lock_directory());
    SHIMA_TRY(check_that_ours());
    UnfinishedRestripe next = record_;
    next.done = done;
    SHIMA_TRY(write_restripe_record(home_, source_, next));
    record_ = std::move(next);
    return {};
  }

  Status check_that_ours() const {
    SHIMA_TRY_ASSIGN(const auto now, read_master(path_));
    SHIMA_TRY_ASSIGN(const auto record, unfinished_restripe(source_, path_));
    if (now && *now == source_ && record && record->goal.id == record_.goal.id) return {};
    return moved_away(path_);
  }

  // The process that holds the directory's lock may be waiting for our leases, so never wait for
  // both.
  Result<DirectoryLock> lock_directory() const {
    while (true) {
      auto lock = DirectoryLock::try_take(path_);
      if (lock || lock.error().code != Code::file_in_use) return lock;
      SHIMA_TRY(watch_.still_alone());
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }

  Status switch_over() {
    SHIMA_TRY_ASSIGN(const DirectoryLock lock, lock_directory());
    SHIMA_TRY(check_that_ours());
    SHIMA_TRY(write_copies(record_.goal, path_, 0600, new_targets_));
    SHIMA_TRY(adopt_access());
    MasterFile next = record_.goal;
    next.intent = ReplaceIntent{source_.id, source_.targets()};
    SHIMA_TRY(watch_.still_alone());
    switching_ = true;
    SHIMA_TRY(put_master(path_, next));
    return finish_intent(path_, next);
  }

  std::string path_;
  MasterFile source_;
  WriterWatch watch_;
  Target home_;
  std::vector<Target> new_targets_;
  UnfinishedRestripe record_{};
  bool switching_ = false;
};

}  // namespace

Status restripe(const RestripeRequest& request, const CopyProgress& progress) {
  SHIMA_TRY_ASSIGN(const auto master, read_settled_master(request.path));
  if (!master)
    return fail(Code::bad_argument,
                request.path + " is not a striped file; shima cp makes one from a plain file");
  if (master->regions == request.regions) return {};
  SHIMA_TRY_ASSIGN(const std::string path, real_path_of(request.path));
  return Restriping::run(path, *master, request, progress);
}

}  // namespace shima
