#include "collective/run.h"

#include <algorithm>

#include "base/clock.h"
#include "base/fault_point.h"
#include "collective/walk.h"
#include "group/agreement.h"

namespace shima {
namespace {

// The data bytes of a slice below the end of the file.
std::uint64_t bytes_before(const Slice& file, FileOffset end_of_file) {
  if (file.len_bytes == 0 || end_of_file == no_end_of_file) return file.len_bytes;
  Cursor cursor(file);
  cursor.seek_offset(end_of_file.value);
  return cursor.byte();
}

// Lists of pieces are read where the messages are: these outlive the transfer, since the channel
// keeps them until its next exchange.
Result<std::vector<Post>> decode_posts(Messages messages) {
  const std::shared_ptr<const void> kept_by_channel(std::shared_ptr<const void>(), &messages);
  std::vector<Post> posts;
  posts.reserve(messages.size());
  for (const auto message : messages) {
    SHIMA_TRY_ASSIGN(Post post, decode_post(message, kept_by_channel));
    posts.push_back(std::move(post));
  }
  return posts;
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

}  // namespace

Status CollectiveTransfer::start(const Result<Post>& mine) {
  call_.channel.begin_transfer();
  const auto messages = exchange_posts(mine);
  if (!messages) {
    call_.channel.end_transfer();
    return std::unexpected(messages.error());
  }
  prepared_ = caught([&] { return prepare(*messages); });
  if (!call_.caches_apart) return {};
  const Status published = publish_before();
  if (!published) call_.channel.end_transfer();
  return published;
}

bool CollectiveTransfer::is_own_io() const {
  return prepared_ && prepared_->plan.path == Path::independent;
}

Result<CollectiveResult> CollectiveTransfer::finish(const Result<std::uint64_t>& own) {
  Part part;
  Staging staging;
  if (!prepared_) {
    part.status = std::unexpected(prepared_.error());
  } else if (is_own_io()) {
    ++call_.counters.path_independent;
    part.status = status_of(own);
  } else {
    part.status = caught([&] { return move_shared(staging, part); });
  }
  if (!part.status) call_.channel.quit_transfer();
  call_.channel.end_transfer();
  const Status agreed = agree(part);
  if (!agreed) call_.channel.wait_for_transfers();
  if (call_.caches_apart && is_shared()) call_.file.look_again();
  SHIMA_TRY(agreed);
  // If all agree, all members have decoded the posts.
  const auto& posts = prepared_->posts;
  const auto longest = std::ranges::max_element(posts, {}, &Post::more_rounds);
  const Post& mine = posts[static_cast<std::size_t>(call_.channel.rank())];
  return CollectiveResult{is_shared() ? bytes_before(mine.file, part.end_of_file) : *own,
                          longest->more_rounds};
}

Result<Messages> CollectiveTransfer::exchange_posts(const Result<Post>& mine) {
  const ScopedTimer timer(call_.counters.exchange_ns);
  fault_point(FaultPhase::post);
  const auto message = caught([&]() -> Result<std::vector<std::byte>> {
    SHIMA_TRY(status_of(mine));
    return encode_post(*mine);
  });
  if (!message) return call_.channel.exchange(std::unexpected(message.error()));
  return call_.channel.exchange(std::span<const std::byte>(*message));
}

Result<CollectiveTransfer::Prepared> CollectiveTransfer::prepare(Messages messages) {
  SHIMA_TRY_ASSIGN(auto posts, decode_posts(messages));
  Plan plan = plan_for(posts);
  return Prepared{std::move(posts), std::move(plan)};
}

Plan CollectiveTransfer::plan_for(std::span<const Post> posts) {
  const ScopedTimer timer(call_.counters.plan_ns);
  fault_point(FaultPhase::plan);
  const Terrain terrain{.members = call_.channel.members(),
                        .layout = call_.file.layout(),
                        .can_pull = call_.channel.can_pull(),
                        // With several nodes, each knows only its own.
                        .one_space = call_.channel.one_space() && !call_.channel.messenger(),
                        .can_pack = call_.channel.windows() != nullptr,
                        .can_message = call_.channel.messenger() != nullptr,
                        .caches_apart = call_.caches_apart};
  return make_plan(posts, call_.direction, terrain, call_.tuning);
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

Status CollectiveTransfer::move_shared(Staging& staging, Part& part) {
  PathContext context{call_.direction, prepared_->plan, prepared_->posts, call_.channel,
                      call_.file,      call_.counters,  staging};
  SHIMA_TRY_ASSIGN(part.end_of_file, run_path(context));
  // The owner of the bytes must find what agents wrote.
  return call_.caches_apart ? call_.file.publish() : Status{};
}

// Agrees on the outcome, and returns the result for this member.
Status CollectiveTransfer::agree(Part& part) {
  const ScopedTimer timer(call_.counters.wait_ns);
  fault_point(FaultPhase::agree);
  Outcome mine = outcome_of(call_.channel, part.status);
  mine.end_of_file = part.end_of_file.value;
  const Outcome all = call_.channel.agree(mine);
  part.end_of_file = FileOffset{all.end_of_file};
  return settled(call_.channel, all, part.status,
                 call_.direction == Direction::write ? "a collective write" : "a collective read");
}

}  // namespace shima
