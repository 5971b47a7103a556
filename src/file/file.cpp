// Opening a file together.
//
// Open is two steps of agreement: all members show what they want, then open, then agree on the
// outcome; where the file must not exist yet, or is to be striped, the first member creates it
// before the others look. Every step keeps the rule that a member with an error of its own still
// takes part.
#include "file/file.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <optional>

#include "base/fault_point.h"
#include "file/exchange_hints.h"
#include "file/folder_default.h"
#include "file/joint_file.h"
#include "file/striping.h"
#include "group/agreement.h"
#include "observe/stats.h"
#include "store/striped/master_store.h"

namespace shima {
namespace {

// What members compare before anyone touches the file.
struct OpenPost {
  std::uint64_t code = 0;
  std::uint64_t mode_bits = 0;
  std::uint64_t wants_stats = 0;
  std::uint64_t stripes = 0;  // the first member's decides
};

unsigned bits_of(const AccessMode& mode) {
  const bool flags[] = {mode.read,       mode.write,           mode.create,
                        mode.exclusive,  mode.delete_on_close, mode.unique_open,
                        mode.sequential, mode.append};
  unsigned bits = 0;
  for (const bool flag : flags) bits = bits << 1 | (flag ? 1U : 0U);
  return bits;
}

// An error if the members cannot open together what they ask for.
Status check_posts(const Channel& channel, std::span<const OpenPost> posts,
                   const Result<OpenRequest>& request) {
  if (!request) return std::unexpected(request.error());
  for (const OpenPost& post : posts) {
    if (post.code != 0)
      return fail(
          static_cast<Code>(post.code),
          fmt::format("opening a file: another {} could not take part", channel.member_word()));
    if (post.mode_bits != bits_of(request->mode))
      return fail(Code::not_same, fmt::format("opening {}: {}s gave different access modes",
                                              request->path, channel.member_word()));
  }
  return {};
}

// Of this process.
int usable_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  return ::sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
}

unsigned permissions_of(const Hints& hints) {
  return hints.file_perm >= 0 ? static_cast<unsigned>(hints.file_perm) : 0666U;
}

std::optional<bool> yes_or_no(Toggle toggle) {
  if (toggle == Toggle::automatic) return {};
  return toggle == Toggle::enable;
}

Result<LogicalFile> open_own(const OpenRequest& request, bool creates, bool exclusive) {
  return LogicalFile::open({.path = request.path,
                            .read = request.mode.read,
                            .write = request.mode.write,
                            .create = creates,
                            .exclusive = exclusive,
                            .direct_read = request.hints.direct_read,
                            .direct_write = request.hints.direct_write,
                            .permissions = permissions_of(request.hints),
                            .close_to_open = yes_or_no(request.hints.shima_close_to_open)});
}

// The name of a striped file must stand for all of it before anybody opens it.
Result<LogicalFile> create_own(const OpenRequest& request, bool stripes) {
  const bool exclusive = request.mode.exclusive;
  if (!stripes) return open_own(request, true, exclusive);
  SHIMA_TRY_ASSIGN(auto regions, regions_for(with_folder_default(request.hints, request.path)));
  SHIMA_TRY(
      create_striped({request.path, std::move(regions), permissions_of(request.hints), exclusive}));
  return open_own(request, false, false);
}

// All members' own descriptors; each says in its own words why it has none.
Result<LogicalFile> open_all(Channel& channel, const OpenRequest& request, bool stripes) {
  std::optional<Result<LogicalFile>> mine;
  const auto status_of = [](const Result<LogicalFile>& file) {
    return file ? Status{} : Status(std::unexpected(file.error()));
  };
  const bool one_creates = request.mode.create && (request.mode.exclusive || stripes);
  if (one_creates && channel.rank() == 0) mine = create_own(request, stripes);
  if (one_creates)
    SHIMA_TRY(agree_on(channel, mine ? status_of(*mine) : Status{}, "creating " + request.path));
  if (!mine) mine = open_own(request, request.mode.create && !one_creates, false);
  fault_point(FaultPhase::open_agree);
  SHIMA_TRY(agree_on(channel, status_of(*mine), "opening " + request.path));
  return *std::move(mine);
}

// Whether members must make visible what they write for each other. One node has one cache, even of
// a file system that other nodes see at close and open only. Collective.
Result<bool> cache_apart(Channel& channel, const LogicalFile& file, const Hints& hints) {
  if (const auto told = yes_or_no(hints.shima_close_to_open)) return *told;
  if (channel.messenger() == nullptr) return false;
  const std::uint64_t mine = file.close_to_open() ? 1 : 0;
  SHIMA_TRY_ASSIGN(const auto all, exchange_values(channel, mine));
  return std::ranges::find(all, 1U) != all.end();
}

}  // namespace

Result<std::unique_ptr<File>> File::open(std::unique_ptr<Channel> channel,
                                         const Result<OpenRequest>& request) {
  OpenPost mine{.wants_stats = stats_wanted() ? 1U : 0U};
  if (!request) mine.code = static_cast<std::uint64_t>(request.error().code);
  if (request) mine.mode_bits = bits_of(request->mode);
  if (request && channel->rank() == 0)
    mine.stripes = request->mode.create && !request->plain &&
                           wants_striping(with_folder_default(request->hints, request->path))
                       ? 1U
                       : 0U;
  const auto all = exchange_with_hints(*channel, mine, request ? request->hints : Hints{});
  const Status fits =
      all ? check_posts(*channel, all->values, request) : Status(std::unexpected(all.error()));
  // All members know alike whether the posts fit together, so all take the same steps.
  if (!fits) {
    SHIMA_TRY(agree_on(*channel, fits, request ? "opening " + request->path : "opening a file"));
    return std::unexpected(fits.error());
  }
  OpenRequest agreed = *request;
  agreed.hints = all->hints;
  SHIMA_TRY_ASSIGN(LogicalFile file, open_all(*channel, agreed, all->values.front().stripes != 0));
  SHIMA_TRY_ASSIGN(const bool caches_apart, cache_apart(*channel, file, agreed.hints));
  const bool alone = channel->size() == 1;
  const int cores = usable_cores();
  const bool wants_stats =
      std::ranges::any_of(all->values, [](const OpenPost& post) { return post.wants_stats != 0; });
  return std::make_unique<JointFile>(
      std::move(channel), std::move(file), std::move(agreed),
      JointFile::Facts{wants_stats, caches_apart, alone && cores > 1});
}

}  // namespace shima
