#include "collective/run.h"

#include <algorithm>

#include "base/clock.h"
#include "base/fault_point.h"
#include "collective/walk.h"
#include "group/agreement.h"

namespace shima {
namespace {

// What every member knows once the posts are exchanged.
struct Prepared {
  std::vector<Post> posts;
  Plan plan;
};

Result<Letters> exchange_posts(const CollectiveCall& call, const Result<Post>& mine) {
  const ScopedTimer timer(call.counters.exchange_ns);
  fault_point(FaultPhase::post);
  const auto letter = caught([&]() -> Result<std::vector<std::byte>> {
    SHIMA_TRY(status_of(mine));
    return encode_post(*mine);
  });
  if (!letter) return call.channel.exchange(std::unexpected(letter.error()));
  return call.channel.exchange(std::span<const std::byte>(*letter));
}

Result<std::vector<Post>> decode_posts(Letters letters) {
  std::vector<Post> posts;
  posts.reserve(letters.size());
  for (const auto letter : letters) {
    SHIMA_TRY_ASSIGN(Post post, decode_post(letter));
    posts.push_back(std::move(post));
  }
  return posts;
}

Plan plan_for(const CollectiveCall& call, std::span<const Post> posts) {
  const ScopedTimer timer(call.counters.plan_ns);
  fault_point(FaultPhase::plan);
  const Terrain terrain{.members = call.channel.members(),
                        .layout = call.file.layout(),
                        .can_pull = call.channel.can_pull(),
                        // Of several nodes each knows about itself only.
                        .one_space = call.channel.one_space() && !call.channel.messenger(),
                        .can_pack = call.channel.windows() != nullptr,
                        .can_message = call.channel.messenger() != nullptr,
                        .caches_apart = call.caches_apart};
  return make_plan(posts, call.direction, terrain, call.tuning);
}

// The data bytes of a slice below the end of the file.
std::uint64_t bytes_before(const Slice& file, FileOffset end_of_file) {
  if (file.len_bytes == 0 || end_of_file == no_end_of_file) return file.len_bytes;
  Cursor cursor(file);
  cursor.seek_offset(end_of_file.value);
  return cursor.byte();
}

Result<Prepared> prepare(const CollectiveCall& call, Letters letters) {
  SHIMA_TRY_ASSIGN(auto posts, decode_posts(letters));
  Plan plan = plan_for(call, posts);
  return Prepared{std::move(posts), std::move(plan)};
}

// What this member's part came to, before all agree.
struct Part {
  Status status;
  FileOffset end_of_file = no_end_of_file;
  std::uint64_t own_bytes = 0;
};

// The result for this member once all have told how it went.
Status agree_on(const CollectiveCall& call, Part& part) {
  const ScopedTimer timer(call.counters.wait_ns);
  fault_point(FaultPhase::agree);
  Outcome mine = outcome_of(call.channel, part.status);
  mine.end_of_file = part.end_of_file.value;
  const Outcome all = call.channel.agree(mine);
  if (all.code != Code::ok) call.channel.wait_for_transfers();
  part.end_of_file = FileOffset{all.end_of_file};
  return settled(call.channel, all, part.status,
                 call.direction == Direction::write ? "a collective write" : "a collective read");
}

// Members move bytes for each other, which is not the order of each one's own calls where they
// cache apart: what all wrote before has to be in its place first. Collective, whatever the path,
// since a member that could not plan does not know it.
Status publish_before(const CollectiveCall& call, const Result<Prepared>& prepared) {
  Part part;
  if (!prepared) {
    part.status = std::unexpected(prepared.error());
  } else if (prepared->plan.path != Path::independent) {
    part.status = caught([&] { return call.file.publish(); });
  }
  SHIMA_TRY(agree_on(call, part));
  if (prepared->plan.path != Path::independent) call.file.look_again();
  return {};
}

Result<FileOffset> run_path(Job& job) {
  switch (job.plan.path) {
    case Path::single_copy:
      return run_single_copy(job);
    case Path::pull:
      return run_pull(job);
    case Path::pack:
      return run_pack(job);
    default:
      return run_message(job);
  }
}

Status move_planned(const CollectiveCall& call, const Prepared& prepared, Staging& staging,
                    Part& part) {
  if (prepared.plan.path == Path::independent) {
    ++call.counters.path_independent;
    const Post& mine = prepared.posts[static_cast<std::size_t>(call.channel.rank())];
    if (mine.len_bytes == 0) return {};
    SHIMA_TRY_ASSIGN(part.own_bytes, call.move_own(mine.file, mine.memory));
    return {};
  }
  Job job{call.direction, prepared.plan, prepared.posts, call.channel,
          call.file,      call.counters, staging};
  SHIMA_TRY_ASSIGN(part.end_of_file, run_path(job));
  // What agents wrote has to be where the owner of the bytes finds it.
  return call.caches_apart ? call.file.publish() : Status{};
}

}  // namespace

Result<CollectiveResult> run_collective(const CollectiveCall& call, const Result<Post>& mine) {
  call.channel.begin_transfer();
  const auto letters = exchange_posts(call, mine);
  if (!letters) {
    call.channel.end_transfer();
    return std::unexpected(letters.error());
  }
  const auto prepared = caught([&] { return prepare(call, *letters); });
  if (call.caches_apart) {
    if (const Status published = publish_before(call, prepared); !published) {
      call.channel.end_transfer();
      return std::unexpected(published.error());
    }
  }
  Part part;
  Staging staging;
  part.status = prepared ? caught([&] { return move_planned(call, *prepared, staging, part); })
                         : std::unexpected(prepared.error());
  if (!part.status) call.channel.quit_transfer();
  call.channel.end_transfer();
  const Status agreed = agree_on(call, part);
  const bool shared = prepared && prepared->plan.path != Path::independent;
  if (call.caches_apart && shared) call.file.look_again();
  SHIMA_TRY(agreed);
  // All members have decoded the posts if all agree.
  const auto longest = std::ranges::max_element(prepared->posts, {}, &Post::more_rounds);
  return CollectiveResult{shared ? bytes_before(mine->file, part.end_of_file) : part.own_bytes,
                          longest->more_rounds};
}

}  // namespace shima
