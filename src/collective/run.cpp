#include "collective/run.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/clock.h"
#include "base/fault_point.h"
#include "collective/plan/subgroups.h"
#include "collective/small_write.h"
#include "collective/window/walk.h"
#include "group/agreement.h"
#include "group/combine_values.h"

namespace shima {
namespace {

// The data bytes of a slice below the end of the file.
std::uint64_t bytes_before(const Slice& file, FileOffset end_of_file) {
  if (file.len_bytes == 0 || end_of_file == no_end_of_file) return file.len_bytes;
  Cursor cursor(file);
  cursor.seek_offset(end_of_file.value);
  return cursor.byte();
}

constexpr auto join_two = [](const Digest& a, const Digest& b) { return join(a, b); };
static_assert(reason_count <= Counters{}.decided.size());

// The bytes of the file that lie in domains of these subfiles; a superset.
FileRange file_range_of(std::span<const Domain> domains, const Layout& layout) {
  FileRange range{{std::numeric_limits<std::int64_t>::max()}, {0}};
  for (const Domain& domain : domains) {
    if (domain.range.empty()) continue;
    range.begin = std::min(range.begin, layout.run_at(domain.subfile, domain.range.begin).begin);
    range.end = std::max(range.end, layout.run_at(domain.subfile, domain.range.end - 1).begin + 1);
  }
  return range;
}

// Of a wait for members that move so many bytes together. Moving a few in memory takes about as
// long as a sleep and its wake.
WaitLength wait_for(std::uint64_t len_bytes, std::uint64_t members) {
  constexpr std::uint64_t brief_bytes = std::uint64_t{64} << 10;  // of a member
  return len_bytes <= brief_bytes * members ? WaitLength::brief : WaitLength::unknown;
}

Result<FileOffset> run_path(PathContext& context) {
  switch (context.plan.path) {
    case Path::single_copy:
      return run_single_copy(context);
    case Path::pull:
      return run_pull(context);
    case Path::pack:
      return run_pack(context);
    default:
      return run_message(context);
  }
}

// Why members that need no plan move their own bytes.
Reason reason_to_move_own(const Tuning& tuning) {
  if (tuning.atomic) return Reason::atomic_mode;
  return tuning.owners_move() ? Reason::hint : Reason::few_bytes;
}

}  // namespace

Status CollectiveTransfer::start(Result<MemberAccess> mine) {
  call_.channel.begin_transfer();
  const auto digest = join_digests(mine);
  if (!digest) {
    call_.channel.end_transfer();
    // Another member may still be writing what this one has left. With several nodes it is the
    // leader, for which the others wait as long as it lives.
    if (call_.channel.messenger() == nullptr) call_.channel.wait_for_transfers();
    return std::unexpected(digest.error());
  }
  call_.history.end(digest->last_ns);
  if (digest->len_bytes == 0 && call_.caches != Caches::apart) {
    // All members know that no bytes are left to move, so nothing can fail any more.
    call_.channel.end_transfer();
    prepared_->digest = *digest;
    if (call_.has_moved_own) prepared_->plan.choice.reason = reason_to_move_own(call_.tuning);
    over_ = true;
    return {};
  }
  begun_ = Clock::now();
  mine_ = std::move(mine->post);
  prepared_ = caught([&] { return prepare(*digest); });
  if (call_.caches != Caches::apart) return {};
  const Status published = publish_before();
  if (!published) {
    call_.history.forget();
    call_.channel.end_transfer();
  }
  return published;
}

bool CollectiveTransfer::is_own_io() const {
  return !over_ && prepared_ && prepared_->plan.is_own_io();
}

// A call that fails, fails on all members, also if only one of them could not prepare it.
Result<CollectiveResult> CollectiveTransfer::finish(const Result<std::uint64_t>& own) {
  if (prepared_) count_choice();
  if (over_) return CollectiveResult{0, prepared_->digest.more_rounds, 0};
  auto result = finish_all(own);
  if (!result) {
    call_.history.forget();
  } else {
    result->duration_ns = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begun_).count());
  }
  return result;
}

Result<CollectiveResult> CollectiveTransfer::finish_all(const Result<std::uint64_t>& own) {
  Part part;
  WindowStaging staging;
  if (!prepared_) {
    part.status = std::unexpected(prepared_.error());
  } else if (is_own_io()) {
    part.status = status_of(own);
  } else {
    part.status = caught([&] { return move_shared(staging, part); });
  }
  if (!part.status) call_.channel.quit_transfer();
  call_.channel.end_transfer();
  const Status agreed = agree(part);
  if (!agreed) call_.channel.wait_for_transfers();
  if (call_.caches == Caches::apart && is_shared()) call_.file.look_again();
  SHIMA_TRY(agreed);
  return CollectiveResult{is_shared() ? bytes_before(mine_.file, part.end_of_file) : *own,
                          prepared_->digest.more_rounds, 0};
}

Result<Digest> CollectiveTransfer::join_digests(const Result<MemberAccess>& mine) {
  const std::uint64_t disk_ns = call_.counters.disk_ns;
  const ScopedTimer timer(call_.counters.exchange_ns, call_.timed);
  fault_point(FaultPhase::post);
  const auto work = [&] { return write_left(); };
  const auto brought = caught([&]() -> Result<Contribution> {
    SHIMA_TRY(status_of(mine));
    PostWriter& writer = call_.posts.mine;
    const bool leaves = !call_.left.empty();
    return Contribution{
        .value = bytes_of(mine->digest),
        .message = leaves ? writer.message_with(call_.left) : writer.message_of(mine->post),
        .lasting = &writer,
        .work = work,
        .needs_work = leaves,
        .wait = wait_for(mine->digest.len_bytes, 1)};
  });
  SHIMA_TRY_ASSIGN(const auto joined, call_.channel.combine(brought, join_bytes<join_two, Digest>));
  call_.counters.exchange_ns -= call_.counters.disk_ns - disk_ns;  // of write_left()
  return value_in<Digest>(joined);
}

// Writes what members of this node have left: all of them have arrived.
Status CollectiveTransfer::write_left() {
  const ScopedTimer timer(call_.counters.disk_ns, call_.timed);
  SmallWrites all;
  const int count = static_cast<int>(call_.channel.near_ranks().size());
  for (int i = 0; i < count; ++i) {
    SHIMA_TRY_ASSIGN(const NearMessage message, call_.channel.near_message(i));
    SHIMA_TRY_ASSIGN(const auto left, PostReader::rest(message.bytes));
    SHIMA_TRY(all.add(left));
  }
  return all.write([&](FileOffset offset, std::span<const iovec> pieces) {
    fault_point(FaultPhase::disk);
    ++call_.counters.runs;
    for (const iovec& piece : pieces) call_.counters.disk_bytes_written += piece.iov_len;
    return call_.file.write(offset, pieces);
  });
}

Result<CollectiveTransfer::Prepared> CollectiveTransfer::prepare(const Digest& digest) {
  Plan plan = plan_for(digest);
  call_.history.begin(digest, call_.direction, plan.choice.strategy,
                      plan.choice.reason == Reason::trial);
  SHIMA_TRY_ASSIGN(auto near, near_posts(plan));
  return Prepared{digest, std::move(plan), std::move(near)};
}

CollectiveTransfer::Served CollectiveTransfer::served_in(const Plan& plan) {
  Served served;
  const int rank = call_.channel.rank();
  const Subgroups subgroups(call_.channel.topology(), plan.subgroup_members);
  if (plan.path == Path::message && subgroups.is_master(rank)) served.subgroup = subgroups.of(rank);
  if (const auto agent = plan.agents.agent_at(rank))
    served.range = file_range_of(plan.agents.domains_of(*agent), call_.file.layout());
  return served;
}

// Posts of near members that may have bytes where this member serves them.
Result<std::vector<NearPost>> CollectiveTransfer::near_posts(const Plan& plan) {
  std::vector<NearPost> near;
  const Served served = served_in(plan);
  if (served.nothing()) return near;
  const int count = static_cast<int>(call_.channel.near_ranks().size());
  for (int i = 0; i < count; ++i) {
    SHIMA_TRY_ASSIGN(const NearMessage message, call_.channel.near_message(i));
    SHIMA_TRY_ASSIGN(const auto bounds, PostReader::bounds(message.bytes));
    if (!bounds || !served.has(i, *bounds)) continue;
    SHIMA_TRY_ASSIGN(Post post, call_.posts.near.read(i, message));
    near.push_back({i, std::move(post)});
  }
  return near;
}

Plan CollectiveTransfer::plan_for(const Digest& digest) {
  const ScopedTimer timer(call_.counters.plan_ns, call_.timed);
  fault_point(FaultPhase::plan);
  const Terrain terrain{.topology = call_.channel.topology(),
                        .layout = call_.file.layout(),
                        .can_pull = call_.channel.can_pull(),
                        // With several nodes, each knows only its own.
                        .one_space = call_.channel.one_space() && !call_.channel.messenger(),
                        .can_pack = call_.channel.windows() != nullptr,
                        .can_message = call_.channel.messenger() != nullptr,
                        .caches = call_.caches};
  return make_plan(digest, call_.direction, terrain, call_.tuning, &call_.history);
}

void CollectiveTransfer::count_choice() {
  constexpr std::array by_strategy{&Counters::strategy_disk_directed, &Counters::strategy_two_phase,
                                   &Counters::strategy_subgroup, &Counters::strategy_independent,
                                   &Counters::strategy_io_node};
  const Choice& choice = prepared_->plan.choice;
  ++(call_.counters.*by_strategy[static_cast<std::size_t>(choice.strategy)]);
  ++call_.counters.decided[static_cast<std::size_t>(choice.reason)];
}

// Members move bytes for each other. If their caches are separate, that is not ordered after each
// one's own earlier writes, so these are published first. Collective on every path, because a
// member that could not plan does not know the path.
Status CollectiveTransfer::publish_before() {
  Part part;
  if (!prepared_) {
    part.status = std::unexpected(prepared_.error());
  } else if (is_shared()) {
    part.status = caught([&] { return call_.file.publish(); });
  }
  SHIMA_TRY(agree(part));
  if (is_shared()) call_.file.look_again();
  return {};
}

Status CollectiveTransfer::move_shared(WindowStaging& staging, Part& part) {
  PathContext context{
      call_.direction, prepared_->plan, mine_,   prepared_->near, call_.channel,
      call_.file,      call_.counters,  staging, call_.disk,      call_.channel.messenger()};
  if (!context.my_domains().empty()) ++call_.counters.agents;
  SHIMA_TRY_ASSIGN(part.end_of_file, run_path(context));
  // The owner of the bytes must find what agents wrote.
  return call_.caches == Caches::apart ? call_.file.publish() : Status{};
}

// Agrees on the outcome, and returns the result for this member.
Status CollectiveTransfer::agree(Part& part) {
  const ScopedTimer timer(call_.counters.wait_ns, call_.timed);
  fault_point(FaultPhase::agree);
  Outcome mine = outcome_of(call_.channel, part.status);
  mine.end_of_file = part.end_of_file.value;
  const WaitLength wait =
      prepared_ ? wait_for(prepared_->digest.len_bytes, prepared_->digest.member_count)
                : WaitLength::unknown;
  const Outcome all = call_.channel.agree(mine, wait);
  part.end_of_file = FileOffset{all.end_of_file};
  return settled(call_.channel, all, part.status,
                 call_.direction == Direction::write ? "a collective write" : "a collective read");
}

}  // namespace shima
