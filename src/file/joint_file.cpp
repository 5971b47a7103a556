// The calls on a file as a whole: its size, hints, atomicity, the order of the members, its end.
// All members compare what they want, the first one acts, and all agree on the outcome.
#include "file/joint_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>

#include "base/fault_point.h"
#include "collective/run.h"
#include "file/hints/common_hints.h"
#include "file/striping.h"
#include "group/agreement.h"
#include "independent/independent.h"
#include "observe/board.h"
#include "observe/stats.h"
#include "observe/trace_log.h"
#include "store/striped/master_store.h"
#include "store/target/paths.h"

namespace shima {
namespace {

// The values that members join when hints may change.
struct HintsFacts {
  Extremes same;
  HintsSummary hints;
  std::uint64_t changes = 0;  // those of the first member
};

constexpr HintsFacts join(const HintsFacts& a, const HintsFacts& b) {
  return {join(a.same, b.same), join(a.hints, b.hints), a.changes | b.changes};
}

Result<std::pair<std::int64_t, std::int64_t>> number_in(const Result<FileOffset>& offset) {
  if (!offset) return std::unexpected(offset.error());
  return std::pair<std::int64_t, std::int64_t>(offset->value, 0);
}

Tuning tuning_of(const Hints& hints, Toggle collective_buffering, bool atomic) {
  const bool disabled = collective_buffering == Toggle::disable && !hints.shima_collective;
  return {.strategy = disabled ? Strategy::independent : hints.shima_collective,
          .path = hints.shima_reach,
          .max_agents = hints.cb_nodes,
          .window_bytes = hints.cb_buffer_size,
          .subgroup_members = hints.shima_subgroup,
          .requests = hints.shima_requests,
          .atomic = atomic};
}

}  // namespace

JointFile::JointFile(Channel& channel, LogicalFile file, OpenRequest request, Facts facts)
    : channel_(&channel),
      file_(std::move(file)),
      io_nodes_(file_.node_identity()),
      request_(std::move(request)),
      removable_(request_.mode.delete_on_close ? name_from_anywhere(request_.path) : ""),
      caches_(facts.caches),
      counters_(facts.wants_stats),
      own_({.channel = channel,
            .file = file_,
            .hints = request_.hints,
            .device_queues = device_queues_,
            .counters = counters_,
            .caches = facts.caches,
            .cores_to_spare = facts.cores_to_spare}) {
  if (counters_.wanted()) file_.start_tallies();
  trace_file_ = trace::file_number(request_.path);
  tune();
}

Status JointFile::set_size(const Result<FileOffset>& size) {
  const auto action = [&] { return file_.truncate(*size); };
  return resize("setting the size of", size, action);
}

Status JointFile::preallocate(const Result<FileOffset>& size) {
  const auto action = [&] { return file_.preallocate(*size); };
  return resize("preallocating", size, action);
}

Status JointFile::sync() {
  const Doing now(call::file_sync, &shown_);
  count(Counted::sync);
  const Status flushed = flush_together();
  const Status synced = flushed ? caught([&] { return file_.sync_own(); }) : flushed;
  fault_point(FaultPhase::sync);
  SHIMA_TRY(agree_on(*channel_, synced, "syncing", request_.path));
  file_.look_again();
  return {};
}

void JointFile::tune() {
  const Hints& hints = request_.hints;
  write_tuning_ = tuning_of(hints, hints.romio_cb_write, atomic_);
  read_tuning_ = tuning_of(hints, hints.romio_cb_read, atomic_);
  own_.tune(atomic_);
  file_.allow_mapping(hints.shima_map_writes != Toggle::disable && caches_ != Caches::apart);
}

// A view rarely brings new hints: then the members join only the values to compare.
Status JointFile::set_hints(const Result<Hints>& hints, std::uint64_t same) {
  const Doing now(call::file_set_view, &shown_);
  std::string text;
  const auto mine = caught([&]() -> Result<HintsFacts> {
    SHIMA_TRY(status_of(hints));
    const bool changes = *hints != request_.hints;
    if (changes) text = encode_hints(*hints);
    return HintsFacts{
        {same, same}, summary_of(*channel_, text), changes && channel_->rank() == 0 ? 1U : 0U};
  });
  fault_point(FaultPhase::view);
  constexpr auto join_facts = [](const HintsFacts& a, const HintsFacts& b) { return join(a, b); };
  SHIMA_TRY_ASSIGN(const HintsFacts all, combine_values<join_facts>(*channel_, mine));
  if (!all.same.equal())
    return fail_settled(Code::not_same, 0, [&] {
      return fmt::format(
          "{}: {}s gave different data representations, or etypes of different extents",
          request_.path, channel_->member_word());
    });
  if (all.changes == 0) return {};
  auto agreed = first_hints(*channel_, all.hints, text);
  const Status known = agreed ? Status{} : std::unexpected(agreed.error());
  SHIMA_TRY(agree_on(*channel_, known, "setting the hints of", request_.path));
  request_.hints = *std::move(agreed);
  tune();
  return {};
}

// Members with separate caches flush before the change, so that no older write follows it; and they
// invalidate their caches, so that neither the first member nor the others use an outdated file.
Status JointFile::resize(const char* doing, const Result<FileOffset>& size,
                         FunctionRef<Status()> action) {
  const Doing now(call::file_set_size, &shown_);
  SHIMA_TRY(flush_together());
  auto wanted = number_in(size);
  const Status published = caught([&] { return file_.publish(); });
  if (wanted && !published) wanted = std::unexpected(published.error());
  file_.look_again();
  const Status status = first_member_does(doing, wanted, [&]() -> Status {
    SHIMA_TRY(action());
    return file_.publish();
  });
  file_.look_again();
  return status;
}

// All members compare the numbers, the first member acts, all agree on the outcome.
Status JointFile::first_member_does(const char* doing,
                                    const Result<std::pair<std::int64_t, std::int64_t>>& same,
                                    FunctionRef<Status()> action) {
  struct Brought {
    Extremes first;
    Extremes second;
  };
  constexpr auto join_both = [](const Brought& a, const Brought& b) {
    return Brought{join(a.first, b.first), join(a.second, b.second)};
  };
  const auto only = [](std::int64_t number) {
    return Extremes{as_unsigned(number), as_unsigned(number)};
  };
  const auto mine = same ? Result<Brought>({only(same->first), only(same->second)})
                         : std::unexpected(same.error());
  SHIMA_TRY_ASSIGN(const Brought all, combine_values<join_both>(*channel_, mine));
  fault_point(FaultPhase::size);
  if (!all.first.equal() || !all.second.equal())
    return fail_settled(Code::not_same, 0, [&] {
      return fmt::format("{} {}: {}s gave different values", doing, request_.path,
                         channel_->member_word());
    });
  const Status status = channel_->rank() == 0 ? caught([&] { return action(); }) : Status{};
  return agree_on(*channel_, status, doing, request_.path);
}

Result<std::int64_t> JointFile::claim_in_order(const Result<std::uint64_t>& len) {
  SHIMA_TRY_ASSIGN(const SumInOrder sum, channel_->sum_in_order(len));
  if (sum.all > as_unsigned(std::numeric_limits<std::int64_t>::max()))
    return fail_settled(Code::bad_count, 0, [&] {
      return request_.path + ": the data of all members together exceed the largest file offset";
    });
  // All members have reached this call, so earlier accesses at the pointer are included in it.
  Result<std::int64_t> begin = 0;
  if (channel_->rank() == 0)
    begin = caught([&] { return shared_pointer()->advance(as_signed(sum.all)); });
  fault_point(FaultPhase::claim);
  constexpr auto highest = [](std::int64_t a, std::int64_t b) { return std::max(a, b); };
  SHIMA_TRY_ASSIGN(const std::int64_t first, combine_values<highest>(*channel_, begin));
  return first + as_signed(sum.before);
}

Status JointFile::set_atomicity(bool atomic) {
  const Doing now(call::file_set_atomicity, &shown_);
  SHIMA_TRY(flush_together());
  SHIMA_TRY(first_member_does("setting the atomicity of",
                              std::pair<std::int64_t, std::int64_t>(atomic, 0), [&]() -> Status {
                                if (!atomic || caches_ != Caches::apart ||
                                    !file_.locks_stay_on_node())
                                  return {};
                                return fail(Code::unsupported_operation,
                                            request_.path +
                                                ": atomic mode needs locks between nodes, and the "
                                                "NFS mount has none (nolock, local_lock)");
                              }));
  atomic_ = atomic;
  tune();
  return {};
}

// Each member prepares its report before the first meeting, and one member writes it after the
// last.
Status JointFile::report() {
  FileStats stats{.path = "", .member_count = channel_->size()};
  std::vector<SubfileTally> mine;
  auto counters = caught([&]() -> Result<Counters> {
    stats.path = request_.path;
    std::vector<std::string> targets{""};
    if (file_.master() != nullptr) targets = file_.master()->targets();
    mine = file_.tallies();
    for (std::size_t i = 0; i < mine.size(); ++i) stats.subfiles.push_back({targets[i], {}});
    return counters_.sum();
  });
  SHIMA_TRY_ASSIGN(stats.sum, sum_values(*channel_, counters));
  for (std::size_t i = 0; i < mine.size(); ++i) {
    SHIMA_TRY_ASSIGN(stats.subfiles[i].tally, sum_values(*channel_, Result<SubfileTally>(mine[i])));
  }
  if (channel_->rank() != 0) return {};
  return caught([&]() -> Status {
    stats.hints = effective(hints_in_effect());
    for (const ReasonRow& row : reason_rows()) stats.reasons.emplace_back(row.name);
    append_stats(stats);
    return {};
  });
}

Hints JointFile::hints_in_effect() const {
  Hints hints = request_.hints;
  if (hints.cb_nodes == 0)
    hints.cb_nodes = hints.shima_collective == Strategy::two_phase
                         ? channel_->size()
                         : agent_candidates(channel_->topology());
  hints.cb_buffer_size =
      window_size(hints.cb_buffer_size, usual_window_bytes(channel_->topology(), Direction::write));
  if (hints.shima_device_buffer_size == 0)
    hints.shima_device_buffer_size = default_device_buffer_bytes;
  if (hints.ind_rd_buffer_size == 0) hints.ind_rd_buffer_size = default_sieve_bytes;
  if (file_.master() != nullptr) {
    describe_striping(*file_.master(), hints);
  } else {  // a plain file that existed before
    hints.shima_targets.clear();
    hints.shima_regions.clear();
  }
  return hints;
}

Status JointFile::close() {
  const Doing now(call::file_close, &shown_);
  device_queues_.clear();
  const Status flushed = flush_together();
  Status status = caught([&] { return file_.close(); });
  if (!flushed) status = flushed;
  if (counters_.wanted()) std::ignore = report();
  fault_point(FaultPhase::close);
  status = agree_on(*channel_, status, "closing", request_.path);
  if (!request_.mode.delete_on_close) return status;
  Status removed;
  if (channel_->rank() == 0) removed = caught([&] { return remove_file(removable_); });
  removed = agree_on(*channel_, removed, "removing", request_.path);
  return status ? removed : status;
}

}  // namespace shima
