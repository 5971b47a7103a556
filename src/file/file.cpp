// Opening, using and closing a file together.
//
// Open is two steps of agreement: all members show what they want, then open, then agree on the
// outcome; where the file must not exist yet, the first member creates it before the others look.
// Every collective below keeps the rule that a member with an error of its own still takes part.
#include "file/file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <optional>
#include <system_error>

#include "base/fault_point.h"
#include "base/log.h"
#include "collective/combine.h"
#include "collective/run.h"
#include "collective/shared_pointer.h"
#include "file/independent.h"
#include "observe/stats.h"
#include "store/logical_file.h"
#include "store/range_lock.h"

namespace shima {
namespace {

unsigned bits_of(const AccessMode& mode) {
  const bool flags[] = {mode.read,       mode.write,           mode.create,
                        mode.exclusive,  mode.delete_on_close, mode.unique_open,
                        mode.sequential, mode.append};
  unsigned bits = 0;
  for (const bool flag : flags) bits = bits << 1 | (flag ? 1U : 0U);
  return bits;
}

// What members compare before anyone touches the file.
struct OpenPost {
  std::uint64_t code = 0;
  std::uint64_t mode_bits = 0;
  std::uint64_t wants_stats = 0;
  Hints hints;
};

Result<std::pair<std::int64_t, std::int64_t>> number_in(const Result<FileOffset>& offset) {
  if (!offset) return std::unexpected(offset.error());
  return std::pair<std::int64_t, std::int64_t>(offset->value, 0);
}

// The hints that a member wants from now on, or why it cannot go on.
struct HintsPost {
  std::uint64_t code = 0;
  std::uint64_t same = 0;
  Hints hints;
};

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

template <class T>
Result<std::vector<T>> exchange_values(Channel& channel, const T& mine) {
  SHIMA_TRY_ASSIGN(const auto letters, channel.exchange(bytes_of(mine)));
  std::vector<T> values(letters.size());
  for (std::size_t i = 0; i < letters.size(); ++i) {
    if (letters[i].size() != sizeof(T))
      return fail(Code::internal, "ranks run different builds of Shima");
    std::memcpy(&values[i], letters[i].data(), sizeof(T));
  }
  return values;
}

Outcome outcome_of_status(const Status& status, int rank) {
  Outcome outcome{.rank = rank};
  if (!status) {
    outcome.code = status.error().code;
    outcome.sys_errno = status.error().sys_errno;
  }
  return outcome;
}

// All members' worst; this member's own words if they are the worst.
Status agree_on(Channel& channel, const Status& mine, const std::string& doing) {
  const Outcome all = channel.agree(outcome_of_status(mine, channel.rank()));
  if (all.code == Code::ok) return {};
  if (!mine && mine.error().code == all.code) return mine;
  return fail(all.code, fmt::format("{}: rank {} failed", doing, all.rank), all.sys_errno);
}

// The program may go to another folder before it closes the file.
std::string name_from_anywhere(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.string();
}

class PlainFile final : public File {
 public:
  PlainFile(std::unique_ptr<Channel> channel, std::unique_ptr<Subfile> subfile, OpenRequest request,
            bool wants_stats, bool caches_apart)
      : channel_(std::move(channel)),
        file_(std::move(subfile)),
        request_(std::move(request)),
        removable_(request_.mode.delete_on_close ? name_from_anywhere(request_.path) : ""),
        wants_stats_(wants_stats),
        caches_apart_(caches_apart) {
    tune();
  }

  Result<std::uint64_t> write(const Transfer& transfer) override {
    return move(Operation::write, transfer);
  }
  Result<std::uint64_t> read(const Transfer& transfer) override {
    return move(Operation::read, transfer);
  }
  Result<std::uint64_t> write_all(const Result<Transfer>& transfer) override {
    return move_all(Operation::write, transfer);
  }
  Result<std::uint64_t> read_all(const Result<Transfer>& transfer) override {
    return move_all(Operation::read, transfer);
  }

  Result<FileOffset> size() override {
    SHIMA_TRY_ASSIGN(const std::uint64_t bytes, file_.master().size());
    return FileOffset{as_signed(bytes)};
  }

  Status set_size(const Result<FileOffset>& size) override {
    return resize("setting the size of", size,
                  [&] { return file_.master().truncate(as_unsigned(size->value)); });
  }
  Status preallocate(const Result<FileOffset>& size) override {
    return resize("preallocating", size,
                  [&] { return file_.master().preallocate(as_unsigned(size->value)); });
  }
  Result<std::int64_t> claim_in_order(const Result<std::uint64_t>& len) override;
  SharedPointer* shared_pointer() override { return channel_->shared_pointer(); }
  bool on_one_node() const override { return channel_->messenger() == nullptr; }
  Status first_member_does(const char* doing,
                           const Result<std::pair<std::int64_t, std::int64_t>>& same,
                           const std::function<Status()>& action) override;
  Status set_atomicity(bool atomic) override;
  bool atomicity() const override { return atomic_; }
  Status agree(const Status& mine) override { return agree_on(*channel_, mine, request_.path); }
  Status sync() override {
    const Status synced = file_.master().sync();
    fault_point(FaultPhase::sync);
    SHIMA_TRY(agree_on(*channel_, synced, "syncing " + request_.path));
    file_.master().look_again();
    return {};
  }
  Status close() override;

  const AccessMode& mode() const override { return request_.mode; }
  const Hints& hints() const override { return request_.hints; }
  Hints hints_in_effect() const override;
  Status set_hints(const Result<Hints>& hints, std::uint64_t same) override;
  Counters& counters() override { return counters_; }

 private:
  void tune();
  Result<std::uint64_t> move(Operation operation, const Transfer& transfer);
  Result<std::uint64_t> move_own(Operation operation, const Slice& file, const Slice& memory,
                                 Counters& counters);
  Result<bool> combine(const Transfer& transfer, Counters& counters);
  Result<std::uint64_t> move_all(Operation operation, const Result<Transfer>& transfer);
  Status resize(const char* doing, const Result<FileOffset>& size,
                const std::function<Status()>& action);
  [[nodiscard]] bool seems_cached(const Bounds& bounds);
  void count(const Counters& counters) {
    if (!wants_stats_) return;
    const std::lock_guard lock(counters_mutex_);
    counters_.add(counters);
  }
  void report();

  std::unique_ptr<Channel> channel_;
  LogicalFile file_;
  OpenRequest request_;
  std::string removable_;  // what to remove when it is closed
  bool wants_stats_;
  bool caches_apart_;  // members do not see at once what others write; the same on all
  Tuning write_tuning_;
  Tuning read_tuning_;
  std::mutex combining_;
  bool atomic_ = false;
  std::mutex alone_;  // in atomic mode: the file's locks do not keep threads of one process apart
  std::mutex counters_mutex_;
  Counters counters_;
};

Tuning::Force force_of(Toggle collective_buffering, Movement movement) {
  if (collective_buffering == Toggle::disable) return Tuning::Force::independent;
  switch (movement) {
    case Movement::pull:
      return Tuning::Force::pull;
    case Movement::pack:
      return Tuning::Force::pack;
    case Movement::message:
      return Tuning::Force::message;
    case Movement::automatic:
      break;
  }
  return Tuning::Force::automatic;
}

void PlainFile::tune() {
  const Hints& hints = request_.hints;
  write_tuning_ = {force_of(hints.romio_cb_write, hints.shima_reach), hints.cb_nodes,
                   hints.cb_buffer_size};
  read_tuning_ = {force_of(hints.romio_cb_read, hints.shima_reach), hints.cb_nodes,
                  hints.cb_buffer_size};
  // In atomic mode every member's access is a unit of its own.
  if (atomic_) write_tuning_.force = read_tuning_.force = Tuning::Force::independent;
}

// Members with different hints would choose differently and lose each other's data, so the first
// member's hold for all.
Status PlainFile::set_hints(const Result<Hints>& hints, std::uint64_t same) {
  HintsPost mine;
  mine.same = same;
  if (hints) mine.hints = *hints;
  if (!hints) mine.code = static_cast<std::uint64_t>(hints.error().code);
  fault_point(FaultPhase::view);
  SHIMA_TRY_ASSIGN(const auto posts, exchange_values(*channel_, mine));
  const auto worst = std::ranges::max_element(posts, {}, &HintsPost::code);
  const auto differs = [&](const HintsPost& post) { return post.same != posts.front().same; };
  if (worst->code == 0 && std::ranges::any_of(posts, differs))
    return fail(Code::not_same,
                fmt::format("{}: ranks gave different data representations, or etypes of different "
                            "extents",
                            request_.path));
  if (worst->code == 0) {
    request_.hints = posts.front().hints;
    tune();
    return {};
  }
  if (!hints && mine.code == worst->code) return std::unexpected(hints.error());
  return fail(static_cast<Code>(worst->code),
              fmt::format("{}: rank {} failed", request_.path, worst - posts.begin()));
}

Result<std::uint64_t> PlainFile::move(Operation operation, const Transfer& transfer) {
  Counters counters;
  ++(operation == Operation::write ? counters.writes : counters.reads);
  SHIMA_TRY_ASSIGN(const bool combined,
                   operation == Operation::write ? combine(transfer, counters) : false);
  const auto moved = combined ? Result<std::uint64_t>(transfer.file.len_bytes)
                              : move_own(operation, transfer.file, transfer.memory, counters);
  if (moved)
    (operation == Operation::write ? counters.bytes_written : counters.bytes_read) += *moved;
  count(counters);
  return moved;
}

// Whether the write was done together with those of other members of the node.
Result<bool> PlainFile::combine(const Transfer& transfer, Counters& counters) {
  if (atomic_ || caches_apart_ || transfer.file.pattern.is_contiguous() ||
      channel_->errands() == nullptr || request_.hints.shima_combine == Toggle::disable)
    return false;
  const Post post = make_post(transfer.file, transfer.memory);
  const std::unique_lock alone(
      combining_, std::try_to_lock);  // one errand a member; other threads go their own way
  if (!alone || !worth_combining(post)) return false;
  const CombinedWrite write{*channel_, file_, counters, request_.hints.cb_buffer_size,
                            [&](const Slice& file, const Slice& memory) {
                              return move_own(Operation::write, file, memory, counters);
                            }};
  SHIMA_TRY_ASSIGN(const bool combined, write_combined(write, post));
  if (combined) ++counters.combined_writes;
  return combined;
}

Result<std::uint64_t> PlainFile::move_own(Operation operation, const Slice& file,
                                          const Slice& memory, Counters& counters) {
  const IndependentRequest request{operation,
                                   file,
                                   memory,
                                   request_.hints.ind_rd_buffer_size,
                                   request_.hints.romio_ds_read != Toggle::disable,
                                   wants_stats_};
  if (!atomic_ || file.len_bytes == 0) return move_independently(request, file_, counters);
  const std::lock_guard one_at_a_time(alone_);
  const Bounds bounds = bounds_of(file);
  SHIMA_TRY_ASSIGN(const auto held,
                   RangeLock::take(file_.master(), {{bounds.lowest}, {bounds.highest}},
                                   operation == Operation::write));
  return move_independently(request, file_, counters);
}

bool PlainFile::seems_cached(const Bounds& bounds) {
  return file_.cached(FileOffset{bounds.lowest}) && file_.cached(FileOffset{bounds.highest - 1});
}

Result<std::uint64_t> PlainFile::move_all(Operation operation, const Result<Transfer>& transfer) {
  Counters counters;
  ++(operation == Operation::write ? counters.collective_writes : counters.collective_reads);
  Post post;
  if (transfer) post = make_post(transfer->file, transfer->memory);
  if (!transfer) post.code = transfer.error().code;
  if (operation == Operation::read && post.len_bytes > 0) post.cached = seems_cached(post.bounds);
  counters.file_pieces += post.file_pieces;
  counters.memory_pieces += post.memory_pieces;
  const CollectiveCall call{operation,
                            *channel_,
                            file_,
                            counters,
                            operation == Operation::write ? write_tuning_ : read_tuning_,
                            caches_apart_,
                            [&](const Slice& file, const Slice& memory) {
                              return move_own(operation, file, memory, counters);
                            }};
  const auto moved = run_collective(call, post);
  if (moved)
    (operation == Operation::write ? counters.bytes_written : counters.bytes_read) += *moved;
  count(counters);
  // This member's own words, unless another member's error is the one that all return.
  if (!transfer && !moved && transfer.error().code == moved.error().code)
    return std::unexpected(transfer.error());
  return moved;
}

// Where members cache apart, nobody may write back later what was written before the change, and
// the first member must not act upon, nor the others keep, an older file.
Status PlainFile::resize(const char* doing, const Result<FileOffset>& size,
                         const std::function<Status()>& action) {
  auto wanted = number_in(size);
  if (const Status published = file_.master().publish(); wanted && !published)
    wanted = std::unexpected(published.error());
  file_.master().look_again();
  const Status status = first_member_does(doing, wanted, [&]() -> Status {
    SHIMA_TRY(action());
    return file_.master().publish();
  });
  file_.master().look_again();
  return status;
}

// All bring the same numbers, the first member acts, all learn how it went.
Status PlainFile::first_member_does(const char* doing,
                                    const Result<std::pair<std::int64_t, std::int64_t>>& same,
                                    const std::function<Status()>& action) {
  struct Brought {
    std::uint64_t code;
    std::int64_t first;
    std::int64_t second;
  };
  const Brought mine{same ? 0U : static_cast<std::uint64_t>(same.error().code),
                     same ? same->first : 0, same ? same->second : 0};
  const auto all = exchange_values(*channel_, mine);
  fault_point(FaultPhase::size);
  const auto differs = [&](const Brought& other) {
    return other.first != mine.first || other.second != mine.second;
  };
  Status status;
  if (!all) {
    status = std::unexpected(all.error());
  } else if (!same) {
    status = std::unexpected(same.error());
  } else if (std::ranges::any_of(*all, [](const Brought& other) { return other.code != 0; })) {
    status = {};  // the member with the error reports it
  } else if (std::ranges::any_of(*all, differs)) {
    status = fail(Code::not_same,
                  fmt::format("{} {}: ranks gave different values", doing, request_.path));
  } else if (channel_->rank() == 0) {
    status = action();
  }
  return agree_on(*channel_, status, fmt::format("{} {}", doing, request_.path));
}

Result<std::int64_t> PlainFile::claim_in_order(const Result<std::uint64_t>& len) {
  struct Claim {
    std::uint64_t code;
    std::int64_t bytes;  // how many; in the answer, from where
  };
  const auto claim_of = [](const auto& bytes) {
    return bytes ? Claim{0, static_cast<std::int64_t>(*bytes)}
                 : Claim{static_cast<std::uint64_t>(bytes.error().code), 0};
  };
  const Claim mine = claim_of(len);
  SHIMA_TRY_ASSIGN(const auto claims, exchange_values(*channel_, mine));
  const auto worst = std::ranges::max_element(claims, {}, &Claim::code);
  const auto failed = [&](std::uint64_t code, std::ptrdiff_t rank) {
    return fail(static_cast<Code>(code), fmt::format("{}: rank {} failed", request_.path, rank));
  };
  if (!len && mine.code == worst->code) return std::unexpected(len.error());
  if (worst->code != 0) return failed(worst->code, worst - claims.begin());
  std::int64_t all = 0;
  std::int64_t before_mine = 0;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (i == static_cast<std::size_t>(channel_->rank())) before_mine = all;
    if (__builtin_add_overflow(all, claims[i].bytes, &all))
      return fail(Code::bad_count, request_.path + ": the ranks' data exceed what a file holds");
  }
  // Only now have all come, so that nobody's earlier access at the pointer is still to be counted.
  Result<std::int64_t> begin = 0;
  if (channel_->rank() == 0) begin = shared_pointer()->advance(all);
  fault_point(FaultPhase::claim);
  SHIMA_TRY_ASSIGN(const auto answers, exchange_values(*channel_, claim_of(begin)));
  if (answers.front().code != 0) return failed(answers.front().code, 0);
  return answers.front().bytes + before_mine;
}

Status PlainFile::set_atomicity(bool atomic) {
  SHIMA_TRY(first_member_does("setting the atomicity of",
                              std::pair<std::int64_t, std::int64_t>(atomic, 0),
                              [] { return Status{}; }));
  atomic_ = atomic;
  tune();
  return {};
}

void PlainFile::report() {
  const auto all = exchange_values(*channel_, counters_);
  if (!all || channel_->rank() != 0) return;
  Counters sum;
  for (const Counters& counters : *all) sum.add(counters);
  append_stats({request_.path, channel_->size(), sum, effective(hints_in_effect())});
}

Hints PlainFile::hints_in_effect() const {
  Hints hints = request_.hints;
  if (hints.cb_nodes == 0) hints.cb_nodes = agent_count(channel_->members());
  hints.cb_buffer_size = window_size(hints.cb_buffer_size);
  if (hints.ind_rd_buffer_size == 0) hints.ind_rd_buffer_size = default_sieve_bytes;
  return hints;
}

Status PlainFile::close() {
  Status status = file_.master().close();
  if (wants_stats_) report();
  fault_point(FaultPhase::close);
  status = agree_on(*channel_, status, "closing " + request_.path);
  if (!request_.mode.delete_on_close) return status;
  Status removed;
  if (channel_->rank() == 0) removed = remove_file(removable_);
  removed = agree_on(*channel_, removed, "removing " + request_.path);
  return status ? removed : status;
}

std::optional<bool> yes_or_no(Toggle toggle) {
  if (toggle == Toggle::automatic) return {};
  return toggle == Toggle::enable;
}

Result<std::unique_ptr<Subfile>> open_own(const OpenRequest& request, bool creates,
                                          bool exclusive) {
  return open_subfile({.path = request.path,
                       .read = request.mode.read,
                       .write = request.mode.write,
                       .create = creates,
                       .exclusive = exclusive,
                       .direct_read = request.hints.direct_read,
                       .direct_write = request.hints.direct_write,
                       .permissions = request.hints.file_perm >= 0
                                          ? static_cast<unsigned>(request.hints.file_perm)
                                          : 0666U,
                       .close_to_open = yes_or_no(request.hints.shima_close_to_open)});
}

// Whether members must make visible what they write for each other. One node has one cache, even of
// a file system that other nodes see at close and open only. Collective.
Result<bool> cache_apart(Channel& channel, const Subfile& subfile, const Hints& hints) {
  if (const auto told = yes_or_no(hints.shima_close_to_open)) return *told;
  if (channel.messenger() == nullptr) return false;
  const std::uint64_t mine = subfile.close_to_open() ? 1 : 0;
  SHIMA_TRY_ASSIGN(const auto all, exchange_values(channel, mine));
  return std::ranges::find(all, 1U) != all.end();
}

// An error if the members cannot open together what they ask for.
Status check_posts(std::span<const OpenPost> posts, const Result<OpenRequest>& request) {
  if (!request) return std::unexpected(request.error());
  for (const OpenPost& post : posts) {
    if (post.code != 0)
      return fail(static_cast<Code>(post.code), "opening a file: another rank could not take part");
    if (post.mode_bits != bits_of(request->mode))
      return fail(Code::not_same,
                  fmt::format("opening {}: ranks gave different access modes", request->path));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<File>> File::open(std::unique_ptr<Channel> channel,
                                         const Result<OpenRequest>& request) {
  OpenPost mine{.wants_stats = stats_wanted() ? 1U : 0U, .hints = {}};
  if (!request) mine.code = static_cast<std::uint64_t>(request.error().code);
  if (request) mine.mode_bits = bits_of(request->mode);
  if (request) mine.hints = request->hints;
  const auto posts = exchange_values(*channel, mine);
  Status status = posts ? check_posts(*posts, request) : Status(std::unexpected(posts.error()));
  OpenRequest agreed = request ? *request : OpenRequest{};
  if (posts) agreed.hints = posts->front().hints;  // see PlainFile::set_hints
  // All members know alike whether the posts fit together, so all take the same steps.
  const bool one_creates = status && request->mode.create && request->mode.exclusive;
  std::unique_ptr<Subfile> subfile;
  const auto open_if_well = [&](bool creates, bool exclusive) {
    if (!status) return;
    auto opened = open_own(agreed, creates, exclusive);
    if (opened) {
      subfile = *std::move(opened);
    } else {
      status = std::unexpected(opened.error());
    }
  };
  if (one_creates) {
    if (channel->rank() == 0) open_if_well(true, true);
    status = agree_on(*channel, status, "creating " + request->path);
    if (channel->rank() != 0) open_if_well(false, false);
  } else {
    open_if_well(request && request->mode.create, false);
  }
  fault_point(FaultPhase::open_agree);
  SHIMA_TRY(agree_on(*channel, status,
                     request ? "opening " + request->path : std::string("opening a file")));
  SHIMA_TRY_ASSIGN(const bool caches_apart, cache_apart(*channel, *subfile, agreed.hints));
  const bool wants_stats =
      std::ranges::any_of(*posts, [](const OpenPost& post) { return post.wants_stats != 0; });
  return std::make_unique<PlainFile>(std::move(channel), std::move(subfile), std::move(agreed),
                                     wants_stats, caches_apart);
}

Status remove_file(const std::string& path) {
  if (::unlink(path.c_str()) != 0) return fail_errno(errno, "removing " + path);
  return {};
}

}  // namespace shima
