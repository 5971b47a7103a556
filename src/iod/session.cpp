#include "iod/session.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "base/fault_point.h"
#include "iod/path/beneath.h"
#include "iod/path/told_facts.h"
#include "layout/master_file.h"
#include "store/striped/parts.h"
#include "store/subfile/file_steps.h"
#include "store/target/text_file.h"

namespace shima::iod {
namespace {

using remote::Facts;
using remote::Op;
using remote::Opening;
using remote::Request;
using remote::Run;

// With fewer runs, a ring costs more than it saves.
constexpr std::size_t runs_for_ring = 16;
// Each is an open directory.
constexpr std::size_t most_attached = 64;

std::unexpected<Error> refuse(std::string what) {
  return fail(Code::access_denied, std::move(what), EACCES);
}

bool has_third_word(Op op) { return op == Op::link_part || op == Op::set_part_times; }

bool is_draft_of_part(std::string_view name) {
  if (!is_draft_name(name)) return false;
  const std::string goal = goal_of_draft(name);
  return is_part_name(goal) || goal == target_marker;
}

// Only names without a slash are parts.
bool may_use(Op op, std::string_view name) {
  if (is_part_name(name)) return name.find('/') == std::string_view::npos;
  const bool of_drafts = op == Op::remove || op == Op::is_being_written || op == Op::examine;
  return of_drafts && is_draft_of_part(name) && name.find('/') == std::string_view::npos;
}

void put(Buffer& data, const void* bytes, std::size_t len_bytes) {
  data.put({static_cast<const std::byte*>(bytes), len_bytes});
}

// The runs with their data, which lie one after the other. Runs that follow each other in the file
// become one.
std::vector<MergeRun> joined(std::span<const Run> runs, std::byte* data) {
  std::vector<MergeRun> longer;
  for (const Run& run : runs) {
    const TargetOffset end{run.offset + as_signed(run.len_bytes)};
    if (!longer.empty() && longer.back().range.end.value == run.offset)
      longer.back().range.end = end;
    else
      longer.push_back({.range = {{run.offset}, end}, .data = data});
    data += run.len_bytes;
  }
  return longer;
}

// No range ends beyond the largest offset.
TargetRange range_of(std::int64_t offset, std::int64_t len_bytes) {
  return {{offset}, {offset + std::min(len_bytes, INT64_MAX - offset)}};
}

bool read_by_ring(Subfile& file, std::span<const MergeRun> runs) {
  std::vector<iovec> pieces;
  pieces.reserve(runs.size());
  std::vector<ApartRun> apart;
  for (const MergeRun& run : runs) {
    pieces.push_back({run.data, run.range.len_bytes()});
    apart.push_back({run.range.begin, {&pieces.back(), 1}, run.range.len_bytes()});
  }
  return file.move_apart(apart, false);
}

}  // namespace

Result<std::int64_t> Session::execute(const Request& request, Buffer& data) {
  ++own_.requests;
  if (request.op() != Op::read && request.op() != Op::write) count(Counted::served_other);
  const auto value = caught([&] { return dispatch(request, data); });
  if (!value || request.head.data_bytes > 0) data.cut(0);
  return value;
}

Result<std::int64_t> Session::dispatch(const Request& request, Buffer& data) {
  const Op op = request.op();
  if (op == Op::unlock_directory) {
    tree_.end_lock();
    return 0;
  }
  if (TreeSession::serves(op)) return execute_on_tree(request, data);
  if ((op >= Op::attach && op <= Op::lease) || has_third_word(op))
    return execute_on_target(request, data);
  if ((op >= Op::write && op <= Op::close) || op == Op::lock_holder)
    return execute_on_file(request, data);
  if (op >= Op::holds && op <= Op::end_lease) return execute_on_lease(request, data);
  return fail(Code::unsupported_operation, "this request", ENOSYS);
}

// --- targets ------------------------------------------------------------------------------------

// `wanted`: the name of a target; or that of a directory, a slash, and a path in it: the target
// beside the files there.
Result<ServedTarget*> Session::find(std::string_view wanted, bool is_directory) const {
  const std::string_view name = wanted.substr(0, wanted.find('/'));
  const auto found = std::ranges::find_if(served_, [&](const auto& target) {
    return target->place.name == name && target->is_directory == is_directory;
  });
  if (found != served_.end()) return found->get();
  return fail(Code::bad_file,
              fmt::format("{} {} is not among those served", is_directory ? "directory" : "target",
                          is_target_name(name) ? name : "asked for"),
              0);
}

Result<std::int64_t> Session::execute_on_target(const Request& request, Buffer& data) {
  if (request.words.size() != (has_third_word(request.op()) ? 3U : 2U))
    return fail(Code::bad_argument, "a request's words", EINVAL);
  const std::string& wanted = request.words[0];
  const bool is_beside = wanted.find('/') != std::string::npos;
  SHIMA_TRY_ASSIGN(ServedTarget* const target, find(wanted, is_beside));
  ++target->traffic.requests;
  if (request.op() == Op::attach)
    return attach(wanted, request.words[1], *target, request.head.first != 0);
  SHIMA_TRY_ASSIGN(const auto files, files_of(wanted, *target));
  const bool names_file = request.op() != Op::list && request.op() != Op::sync_names;
  if (names_file && !may_use(request.op(), request.words[1]))
    return refuse("a name that is no part's, in target " + wanted);
  if (request.op() == Op::open) return open(request, *target, *files, data);
  if (!has_third_word(request.op())) return execute_by_name(request, *files, data);
  if (request.op() == Op::set_part_times) {
    SHIMA_TRY_ASSIGN(const FileTimes times, remote::decode_times(request.words[2]));
    SHIMA_TRY(files->set_times(request.words[1], times));
    return 0;
  }
  const std::string& goal = request.words[2];
  SHIMA_TRY_ASSIGN(ServedTarget* const other, find(goal, goal.find('/') != std::string::npos));
  SHIMA_TRY_ASSIGN(const auto there, files_of(goal, *other));
  SHIMA_TRY(files->link_into(*there, request.words[1]));
  return 0;
}

// The directory is opened again: its disk may have been mounted or replaced since. `file`: whose
// owner may have made a directory beside it.
Result<std::int64_t> Session::attach(const std::string& wanted, const std::string& file,
                                     ServedTarget& target, bool makes_target) {
  std::shared_ptr<TargetFiles> files;
  if (target.is_directory) {
    const auto how = makes_target ? FileTree::BesideFiles::create : FileTree::BesideFiles::use;
    const std::string below = wanted.substr(std::min(wanted.find('/') + 1, wanted.size()));
    SHIMA_TRY_ASSIGN(files, TreeSession::files_beside(target.place.directory, below, file, how));
  } else {
    const auto purpose = makes_target ? Target::Purpose::create : Target::Purpose::use;
    SHIMA_TRY_ASSIGN(UniqueFd directory, open_without_links(target.place.directory, O_RDONLY));
    SHIMA_TRY_ASSIGN(const Target opened,
                     Target::open_in(target.place, std::move(directory), purpose));
    files = opened.shared_files();
  }
  if (targets_.size() >= most_attached) targets_.clear();
  targets_.insert_or_assign(wanted, std::move(files));
  return 0;
}

Result<std::shared_ptr<TargetFiles>> Session::files_of(const std::string& wanted,
                                                       ServedTarget& target) {
  if (!targets_.contains(wanted)) SHIMA_TRY(attach(wanted, {}, target, false));
  return targets_.at(wanted);
}

// --- directories --------------------------------------------------------------------------------

Result<std::int64_t> Session::execute_on_tree(const Request& request, Buffer& data) {
  if (request.words.empty()) return fail(Code::bad_argument, "a request's words", EINVAL);
  SHIMA_TRY_ASSIGN(ServedTarget* const served, find(request.words[0], true));
  ++served->traffic.requests;
  if (request.op() != Op::open_path) return tree_.execute(request, served->place.directory, data);
  if (file_ || common_file_)
    return fail(Code::bad_handle, "a file is open over this connection", EBUSY);
  Facts facts;
  SHIMA_TRY_ASSIGN(auto opened, TreeSession::open(request, served->place.directory, facts));
  return keep_open(std::move(opened), *served, request.head.first, facts, data);
}

std::int64_t Session::keep_open(std::unique_ptr<Subfile> file, ServedTarget& target,
                                std::int64_t opening, const Facts& facts, Buffer& data) {
  file_ = std::move(file);
  opening_ = opening;
  file_target_ = &target;
  file_facts_ = facts;
  ++target.open_files;
  put(data, &file_facts_, sizeof file_facts_);
  return 0;
}

// The names after the last one known, as many as fit into a message.
Result<std::int64_t> Session::list(const std::string& known, TargetFiles& files, Buffer& data) {
  SHIMA_TRY_ASSIGN(auto names, files.names());
  std::erase_if(names, [&](const std::string& one) {
    return one <= known || !(is_part_name(one) || is_draft_of_part(one));
  });
  std::ranges::sort(names);
  std::size_t bytes = 0;
  const auto last = std::ranges::find_if(names, [&](const std::string& one) {
    bytes += one.size() + sizeof(std::uint32_t);
    return bytes > remote::most_data_bytes;
  });
  names.erase(last, names.end());
  const auto words = remote::encode_words(names);
  put(data, words.data(), words.size());
  return 0;
}

Result<std::int64_t> Session::execute_by_name(const Request& request, TargetFiles& files,
                                              Buffer& data) {
  const std::string& name = request.words[1];
  const auto number = [&] { return as_unsigned(std::max<std::int64_t>(request.head.first, 0)); };
  const auto mode = static_cast<mode_t>(number() & 0777U);
  const auto done = [](const Status& status) {
    return status ? Result<std::int64_t>(0) : std::unexpected(status.error());
  };
  switch (request.op()) {
    case Op::examine: {
      SHIMA_TRY_ASSIGN(const struct stat facts, files.examine(name));
      const Facts answer = told(facts);
      put(data, &answer, sizeof answer);
      return 0;
    }
    case Op::list:
      return list(name, files, data);
    case Op::read_text: {
      SHIMA_TRY_ASSIGN(
          const TargetFiles::Text found,
          files.read_text(name, std::min<std::size_t>(number(), remote::most_data_bytes)));
      put(data, found.text.data(), found.text.size());
      return found.owner;
    }
    case Op::write_text: {
      const auto text = data.bytes();
      return done(
          files.write_text(name, {reinterpret_cast<const char*>(text.data()), text.size()}, mode));
    }
    case Op::make:
      return done(files.make(name, mode));
    case Op::set_size:
      return done(files.truncate(name, number()));
    case Op::remove:
      return done(number() != 0 ? remove_if_there(files, name) : files.remove(name));
    case Op::set_mode:
      return done(files.set_mode(name, mode));
    case Op::is_being_written:
      return files.is_being_written(name) ? 1 : 0;
    case Op::sync_names:
      return done(files.sync());
    case Op::lease: {
      const auto sole = number() != 0 ? TargetFiles::Sole::yes : TargetFiles::Sole::no;
      SHIMA_TRY_ASSIGN(lease_, files.lease(name, sole));
      return 0;
    }
    default:
      return fail(Code::unsupported_operation, "this request", ENOSYS);
  }
}

Result<std::int64_t> Session::open(const Request& request, ServedTarget& target, TargetFiles& files,
                                   Buffer& data) {
  if (file_ || common_file_)
    return fail(Code::bad_handle, "a file is open over this connection", EBUSY);
  const auto has = [&](std::int64_t bit) { return (request.head.first & bit) != 0; };
  // A special file may block its opener for ever.
  SHIMA_TRY_ASSIGN(const struct stat facts, files.examine(request.words[1]));
  if (!S_ISREG(facts.st_mode)) return refuse(request.words[1] + " is not a regular file");
  SHIMA_TRY_ASSIGN(auto opened,
                   files.open(request.words[1], {.path = {},
                                                 .read = has(Opening::read),
                                                 .write = has(Opening::write),
                                                 .direct_read = has(Opening::direct_read),
                                                 .direct_write = has(Opening::direct_write),
                                                 .portion_bytes = portion_bytes}));
  SHIMA_TRY_ASSIGN(const FileIdentity identity, opened->identity());
  if (identity != FileIdentity{facts.st_dev, facts.st_ino})
    return fail(Code::file_in_use, request.words[1] + " was replaced while it was being opened");
  return keep_open(std::move(opened), target, request.head.first, told(facts), data);
}

// --- the open file ------------------------------------------------------------------------------

void Session::forget_file() {
  if (file_ || common_file_) --file_target_->open_files;
  shared_.lock_holders.remove_all(this);
  file_.reset();
  common_file_.reset();
  merger_ = {};
}

void Session::count_read(std::uint64_t bytes) {
  own_.read_bytes += bytes;
  file_target_->traffic.read_bytes += bytes;
  file_target_->shown.moved(Direction::read, bytes);
}

void Session::count_written(std::uint64_t bytes) {
  own_.written_bytes += bytes;
  file_target_->traffic.written_bytes += bytes;
  file_target_->shown.moved(Direction::write, bytes);
}

// Moves the runs together with those that other sessions want; false if they are not to be merged.
// Another session's descriptor may move them, so what this one may not do is left to its own.
Result<bool> Session::move_merged(Direction direction, std::span<MergeRun> runs) {
  const bool reads = direction == Direction::read;
  const bool may_move = (opening_ & (reads ? Opening::read : Opening::write)) != 0;
  const bool is_direct = (opening_ & (reads ? Opening::direct_read : Opening::direct_write)) != 0;
  // From the page cache, sessions read in parallel.
  const bool is_worth_it = runs.size() > 1 && (!reads || is_direct);
  if (!may_move || !is_worth_it || !RunMerger::are_in_order(runs)) return false;
  std::shared_ptr<RunMerger>& merger = merger_[static_cast<std::size_t>(direction)];
  if (!merger) merger = shared_.mergers.of(identity(), direction, is_direct);
  SHIMA_TRY(merger->move(*file_, runs));
  return true;
}

// Stops at the first run that the end of the file cuts.
Result<std::int64_t> Session::read(const Request& request, Buffer& data) {
  const std::span<std::byte> room = data.take(remote::bytes_in(request.runs));
  std::vector<MergeRun> runs = joined(request.runs, room.data());
  SHIMA_TRY_ASSIGN(const bool is_merged, move_merged(Direction::read, runs));
  std::size_t at = 0;
  if (!is_merged && runs.size() >= runs_for_ring && read_by_ring(*file_, runs)) {
    at = room.size();
  } else {
    for (MergeRun& run : runs) {
      const std::uint64_t wanted = run.range.len_bytes();
      if (!is_merged) {
        SHIMA_TRY_ASSIGN(run.moved_bytes, file_->read(run.range.begin, run.data, wanted));
      }
      at += run.moved_bytes;
      if (run.moved_bytes < wanted) break;
    }
  }
  data.cut(at);
  count_read(at);
  count(Counted::served_read, at);
  return 0;
}

Result<std::int64_t> Session::write(const Request& request, Buffer& data) {
  std::vector<MergeRun> runs = joined(request.runs, data.bytes().data());
  SHIMA_TRY_ASSIGN(const bool is_merged, move_merged(Direction::write, runs));
  for (const MergeRun& run : runs) {
    fault_point(FaultPhase::iod_write);
    const std::uint64_t len = run.range.len_bytes();
    if (!is_merged) SHIMA_TRY(file_->write(run.range.begin, run.data, len));
    count_written(len);
  }
  count(Counted::served_write, data.bytes().size());
  return 0;
}

Status Session::take_part(const DirectedCall& call, Arrival from, CallTable& calls) {
  ++own_.requests;
  const std::int64_t needed = call.writes != 0 ? Opening::write : Opening::read;
  if ((!file_ && !common_file_) || (opening_ & needed) == 0)
    return fail(Code::bad_handle, "no file is open over this connection for such a call", EBADF);
  ++file_target_->traffic.requests;
  if (file_) {
    common_file_ = LogicalFile::around(file_target_->place.name, std::move(file_));
    common_file_->start_tallies();
  }
  constexpr std::int64_t direct = Opening::direct_read | Opening::direct_write;
  const CallTable::Seat seat{.from = std::move(from),
                             .identity = identity(),
                             .file = *common_file_,
                             .direct = (opening_ & direct) != 0,
                             .moved = [this, writes = call.writes != 0](std::uint64_t bytes) {
                               writes ? count_written(bytes) : count_read(bytes);
                               count(writes ? Counted::served_write : Counted::served_read, bytes);
                             }};
  const auto moved = calls.take_part(call, seat);
  SHIMA_TRY(status_of(moved));
  if (moved->is_from_agent == 0) return {};
  ++own_.directed_calls;
  ++file_target_->traffic.directed_calls;
  return {};
}

Result<std::int64_t> Session::execute_on_file(const Request& request, Buffer& data) {
  if (request.op() == Op::close && common_file_) {
    const Status closed = common_file_->close();
    forget_file();
    return closed ? Result<std::int64_t>(0) : std::unexpected(closed.error());
  }
  if (!file_) return fail(Code::bad_handle, "no file is open over this connection", EBADF);
  ++file_target_->traffic.requests;
  const std::int64_t first = request.head.first;
  const std::int64_t second = request.head.second;
  if (first < 0 || second < 0) return fail(Code::bad_argument, "a negative number", EINVAL);
  const auto done = [](const Status& status) {
    return status ? Result<std::int64_t>(0) : std::unexpected(status.error());
  };
  switch (request.op()) {
    case Op::read:
      return read(request, data);
    case Op::write:
      return write(request, data);
    case Op::size: {
      SHIMA_TRY_ASSIGN(const std::uint64_t bytes, file_->size());
      return as_signed(bytes);
    }
    case Op::next_data: {
      SHIMA_TRY_ASSIGN(const auto found, file_->next_data({first}));
      return found ? found->value : -1;
    }
    case Op::truncate:
      return done(file_->truncate(as_unsigned(first)));
    case Op::preallocate:
      return done(file_->preallocate(as_unsigned(first)));
    case Op::will_need:
      if (first < second) file_->will_need({{first}, {second}});
      return 0;
    case Op::sync:
      return done(file_->sync());
    case Op::try_lock:
    case Op::unlock:
    case Op::lock_holder:
      return execute_on_lock(request, data);
    case Op::facts: {
      SHIMA_TRY_ASSIGN(const uid_t owner, file_->owner());
      Facts now = file_facts_;
      now.owner = owner;
      put(data, &now, sizeof now);
      return 0;
    }
    case Op::close: {
      const Status closed = file_->close();
      forget_file();
      return done(closed);
    }
    default:
      return fail(Code::unsupported_operation, "this request", ENOSYS);
  }
}

Result<std::int64_t> Session::execute_on_lock(const Request& request, Buffer& data) {
  const TargetOffset begin{request.head.first};
  const std::uint64_t len_bytes = as_unsigned(request.head.second);
  const TargetRange range = range_of(request.head.first, request.head.second);
  if (request.op() == Op::try_lock) {
    const bool is_exclusive = (request.head.flags & remote::Flag::exclusive) != 0;
    SHIMA_TRY_ASSIGN(const bool locked, file_->try_lock(begin, len_bytes, is_exclusive));
    if (locked) shared_.lock_holders.add({this, identity(), range, client_});
    return locked ? 1 : 0;
  }
  if (request.op() == Op::unlock) {
    shared_.lock_holders.remove(this, range);
    file_->unlock(begin, len_bytes);
    return 0;
  }
  // A client, or else a process of this machine.
  std::string holder = shared_.lock_holders.find(this, identity(), range);
  if (holder.empty()) holder = file_->lock_holder(begin, len_bytes);
  put(data, holder.data(), std::min(holder.size(), remote::most_word_bytes));
  return 0;
}

Result<std::int64_t> Session::execute_on_lease(const Request& request, Buffer& data) {
  if (!lease_) return fail(Code::bad_handle, "no lease is held over this connection", EBADF);
  if (request.op() == Op::end_lease) {
    lease_.reset();
    return 0;
  }
  if (request.op() == Op::holds) {
    SHIMA_TRY_ASSIGN(const bool holds, lease_->holds());
    return holds ? 1 : 0;
  }
  SHIMA_TRY_ASSIGN(const struct stat facts, lease_->facts());
  const Facts answer = told(facts);
  put(data, &answer, sizeof answer);
  return 0;
}

}  // namespace shima::iod
