// Opens a file collectively.
//
// All members exchange their requests, open the file, and agree on the outcome. If the file must
// not exist yet, or is to be striped, the first member creates it before the others open it. The
// exchanged requests determine which of these steps take place.
#include "file/file.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/cpu_mask.h"
#include "base/fault_point.h"
#include "file/directory_default.h"
#include "file/exchange_hints.h"
#include "file/joint_file.h"
#include "file/striping.h"
#include "group/agreement.h"
#include "observe/stats.h"
#include "store/striped/master_store.h"

namespace shima {
namespace {

// The values that members compare before any of them accesses the file.
struct OpenPost {
  std::uint64_t mode_bits = 0;
  std::uint64_t wants_stats = 0;
  // The first member's values decide.
  std::uint64_t stripes = 0;
  std::uint64_t close_to_open = 0;  // a Toggle
};

unsigned bits_of(const AccessMode& mode) {
  const bool flags[] = {mode.read,       mode.write,           mode.create,
                        mode.exclusive,  mode.delete_on_close, mode.unique_open,
                        mode.sequential, mode.append};
  unsigned bits = 0;
  for (const bool flag : flags) bits = bits << 1 | (flag ? 1U : 0U);
  return bits;
}

// The cores that this process may use.
int usable_cores() { return std::max(1, CpuMask::own().count()); }

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

// The master file of a striped file must be complete before another member opens it.
Result<LogicalFile> create_own(const OpenRequest& request, bool stripes) {
  const bool exclusive = request.mode.exclusive;
  if (!stripes) return open_own(request, true, exclusive);
  SHIMA_TRY_ASSIGN(auto regions, regions_for(with_directory_default(request.hints, request.path)));
  SHIMA_TRY(
      create_striped({request.path, std::move(regions), permissions_of(request.hints), exclusive}));
  return open_own(request, false, false);
}

// The request that all members agreed on; the same on all.
struct Agreed {
  OpenRequest request;
  bool stripes = false;
  bool wants_stats = false;
};

Result<OpenPost> post_of(const Channel& channel, const Result<OpenRequest>& request) {
  SHIMA_TRY(status_of(request));
  const bool stripes = channel.rank() == 0 && request->mode.create && !request->plain &&
                       wants_striping(with_directory_default(request->hints, request->path));
  return OpenPost{bits_of(request->mode), stats_wanted() ? 1U : 0U, stripes ? 1U : 0U,
                  static_cast<std::uint64_t>(request->hints.shima_close_to_open)};
}

// The members of one node share a cache, even on a file system where other nodes see changes only
// at close and open. Collective; a member without a file contributes its error.
Result<Caches> caches_of(Channel& channel, const Result<LogicalFile>& file, Toggle told) {
  const auto told_apart = yes_or_no(told);
  if (told_apart == true) return Caches::apart;
  if (channel.messenger() == nullptr) return Caches::one;
  const auto mine = caught([&]() -> Result<CacheFacts> {
    SHIMA_TRY(status_of(file));
    return CacheFacts{file->close_to_open() ? 1U : 0U, file->local_identity()};
  });
  SHIMA_TRY_ASSIGN(const auto all, exchange_values(channel, mine));
  CacheFacts joined = all.front();
  for (std::size_t i = 1; i < all.size(); ++i) joined = join(joined, all[i]);
  return caches_between(joined, told_apart);
}

Result<Agreed> agreed_in(const Values<OpenPost>& all, const OpenRequest& mine) {
  SHIMA_TRY_ASSIGN(Hints hints, hints_in(all));
  return Agreed{{mine.path, mine.mode, std::move(hints), mine.plain},
                all.front().stripes != 0,
                all.any([](const OpenPost& post) { return post.wants_stats != 0; })};
}

enum class Step : std::uint8_t { create_first, open_there, open_or_create };

// Opens this member's own descriptors; each member reports its own error.
Result<LogicalFile> take_step(const Result<Agreed>& agreed, Step step) {
  return caught([&]() -> Result<LogicalFile> {
    SHIMA_TRY(status_of(agreed));
    if (step == Step::create_first) return create_own(agreed->request, agreed->stripes);
    const bool creates = step == Step::open_or_create && agreed->request.mode.create;
    return open_own(agreed->request, creates, false);
  });
}

}  // namespace

Result<std::unique_ptr<File>> File::open(std::unique_ptr<Channel> owner,
                                         const Result<OpenRequest>& request) {
  Channel& channel = *owner;
  const auto mine = caught([&] { return post_of(channel, request); });
  static const Hints none;
  SHIMA_TRY_ASSIGN(const auto all,
                   exchange_with_hints(channel, mine, request ? request->hints : none));
  const OpenPost first = all.front();
  if (all.any([&](const OpenPost& post) { return post.mode_bits != first.mode_bits; }))
    return fail_settled(Code::not_same, 0, [&] {
      return fmt::format("opening {}: {}s gave different access modes", request->path,
                         channel.member_word());
    });
  const auto agreed = caught([&] { return agreed_in(all, *request); });
  const bool one_creates = request->mode.create && (request->mode.exclusive || first.stripes != 0);
  const bool first_here = one_creates && channel.rank() == 0;
  std::optional<Result<LogicalFile>> own;
  if (first_here) own = take_step(agreed, Step::create_first);
  if (one_creates)
    SHIMA_TRY(
        agree_on(channel, own ? status_of(*own) : status_of(agreed), "creating", request->path));
  if (!own) own = take_step(agreed, one_creates ? Step::open_there : Step::open_or_create);
  Result<LogicalFile>& file = *own;
  fault_point(FaultPhase::open_agree);
  const auto caches = caches_of(channel, file, static_cast<Toggle>(first.close_to_open));
  // All steps that may fail are before the agreement.
  auto joint = caught([&]() -> Result<std::unique_ptr<JointFile>> {
    SHIMA_TRY(status_of(file));
    SHIMA_TRY(status_of(caches));
    const bool may_help = channel.size() == 1 && usable_cores() > 1;
    return std::make_unique<JointFile>(channel, *std::move(file), agreed->request,
                                       JointFile::Facts{agreed->wants_stats, *caches, may_help});
  });
  SHIMA_TRY(agree_on(channel, status_of(joint), "opening", request->path));
  (*joint)->own(std::move(owner));
  return joint;
}

}  // namespace shima
