#include "collective/run.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/fault_point.h"
#include "collective/walk.h"

namespace shima {
namespace {

Result<std::vector<Post>> exchange_posts(const CollectiveCall& call, const Post& mine) {
  const Span span(call.counters.exchange_ns);
  fault_point(FaultPhase::post);
  SHIMA_TRY_ASSIGN(const auto letters, call.channel.exchange(encode_post(mine)));
  return caught([&]() -> Result<std::vector<Post>> {
    std::vector<Post> posts;
    posts.reserve(letters.size());
    for (const auto letter : letters) {
      SHIMA_TRY_ASSIGN(Post post, decode_post(letter));
      posts.push_back(std::move(post));
    }
    return posts;
  });
}

// The worst error that a member brought along.
const Post* worst_of(std::span<const Post> posts) {
  const auto worst = std::ranges::max_element(posts, {}, &Post::code);
  return worst->code == Code::ok ? nullptr : &*worst;
}

Plan plan_for(const CollectiveCall& call, std::span<const Post> posts) {
  const Span span(call.counters.plan_ns);
  fault_point(FaultPhase::plan);
  const Terrain terrain{.members = call.channel.members(),
                        .layout = call.file.layout(),
                        .can_pull = call.channel.can_pull(),
                        // Of several nodes each knows about itself only.
                        .one_space = call.channel.one_space() && !call.channel.messenger(),
                        .can_pack = call.channel.windows() != nullptr,
                        .can_message = call.channel.messenger() != nullptr,
                        .caches_apart = call.caches_apart};
  return make_plan(posts, call.operation, terrain, call.tuning);
}

// The data bytes of a slice below the end of the file.
std::uint64_t bytes_before(const Slice& file, FileOffset end_of_file) {
  if (file.len_bytes == 0 || end_of_file == no_end_of_file) return file.len_bytes;
  Cursor cursor(file);
  cursor.seek_offset(end_of_file.value);
  return cursor.byte();
}

// What this member's part came to, before all agree.
struct Part {
  Status status;
  FileOffset end_of_file = no_end_of_file;
  std::uint64_t own_bytes = 0;
};

// The result for this member once all have told how it went.
Status agree_on(const CollectiveCall& call, Part& part) {
  const Span span(call.counters.wait_ns);
  fault_point(FaultPhase::agree);
  Outcome mine{.rank = call.channel.rank(), .end_of_file = part.end_of_file.value};
  if (!part.status) {
    mine.code = part.status.error().code;
    mine.sys_errno = part.status.error().sys_errno;
  }
  const Outcome all = call.channel.agree(mine);
  if (all.code != Code::ok) call.channel.wait_for_transfers();
  part.end_of_file = FileOffset{all.end_of_file};
  if (all.code == Code::ok) return {};
  if (!part.status && part.status.error().code == all.code) return part.status;
  return fail(all.code,
              fmt::format("a collective {}: {} {} failed",
                          call.operation == Operation::write ? "write" : "read",
                          call.channel.member_word(), all.rank),
              all.sys_errno);
}

// Members move bytes for each other, which is not the order of each one's own calls where they
// cache apart: what all wrote before has to be in its place first, and what agents wrote has to be
// where the owner of the bytes finds it.
Part move_shared(const CollectiveCall& call, Job& job) {
  Part part;
  if (call.caches_apart) {
    part.status = call.file.publish();
    part.status = agree_on(call, part);
    if (!part.status) return part;  // on all members
    call.file.look_again();
  }
  const auto end = caught([&] {
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
  });
  if (end) part.end_of_file = *end;
  if (!end) part.status = std::unexpected(end.error());
  if (call.caches_apart && part.status) part.status = call.file.publish();
  return part;
}

// Memory that runs out on one member must not leave the others waiting, so nothing is thrown from
// here on.
Part move_planned(const CollectiveCall& call, const Plan& plan, std::span<const Post> posts) {
  if (plan.path == Path::independent) {
    Part part;
    ++call.counters.path_independent;
    const Post& mine = posts[static_cast<std::size_t>(call.channel.rank())];
    const auto moved = caught([&] {
      return mine.len_bytes == 0 ? Result<std::uint64_t>(0) : call.move_own(mine.file, mine.memory);
    });
    if (moved) part.own_bytes = *moved;
    if (!moved) part.status = std::unexpected(moved.error());
    return part;
  }
  Job job{call.operation, plan, posts, call.channel, call.file, call.counters};
  return move_shared(call, job);
}

}  // namespace

Result<CollectiveResult> run_collective(const CollectiveCall& call, const Post& mine) {
  Part part;
  Path path = Path::independent;
  call.channel.begin_transfer();
  const auto posts = exchange_posts(call, mine);
  if (!posts) {
    part.status = std::unexpected(posts.error());
  } else if (const Post* bad = worst_of(*posts); bad != nullptr) {
    part.status = fail(bad->code, fmt::format("{} {} could not take part",
                                              call.channel.member_word(), bad - posts->data()));
  } else {
    const Plan plan = plan_for(call, *posts);
    path = plan.path;
    part = move_planned(call, plan, *posts);
  }
  call.channel.end_transfer();
  const Status agreed = agree_on(call, part);
  if (call.caches_apart && path != Path::independent) call.file.look_again();
  SHIMA_TRY(agreed);
  // All have decoded the posts if all agree.
  const auto longest = std::ranges::max_element(*posts, {}, &Post::more_rounds);
  return CollectiveResult{
      path == Path::independent ? part.own_bytes : bytes_before(mine.file, part.end_of_file),
      longest->more_rounds};
}

}  // namespace shima
