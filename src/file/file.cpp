// Opens a file collectively.
//
// All members compare their requests, open the file, and agree on the outcome. If the file must not
// exist yet, or is to be striped, the first member creates it before the others open it. The joined
// requests determine which of these steps take place. No member touches the file before all have
// come: one may remove an old file of this name before it opens the new one.
#include "file/file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <optional>
#include <string_view>

#include "base/fault_point.h"
#include "base/process/cpu_mask.h"
#include "file/hints/common_hints.h"
#include "file/hints/directory_default.h"
#include "file/joint_file.h"
#include "file/striping.h"
#include "group/agreement.h"
#include "observe/board.h"
#include "observe/stats.h"
#include "store/striped/master_store.h"

namespace shima {
namespace {

// The values that members join before any of them accesses the file.
struct OpenFacts {
  Extremes mode_bits;
  HintsSummary hints;
  std::uint64_t wants_stats = 0;  // one of them
  // The first member's values decide; the others bring 0.
  std::uint64_t stripes = 0;
  std::uint64_t close_to_open = 0;  // a Toggle
};

constexpr OpenFacts join(const OpenFacts& a, const OpenFacts& b) {
  return {join(a.mode_bits, b.mode_bits), join(a.hints, b.hints), a.wants_stats | b.wants_stats,
          a.stripes | b.stripes, a.close_to_open | b.close_to_open};
}

struct OpenPost {
  OpenFacts facts;
  std::string hints;  // their text
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
  OpenPost post{.facts = {}, .hints = encode_hints(request->hints)};
  const std::uint64_t mode_bits = bits_of(request->mode);
  post.facts = {.mode_bits = {mode_bits, mode_bits},
                .hints = summary_of(channel, post.hints),
                .wants_stats = stats_wanted() ? 1U : 0U};
  if (channel.rank() != 0) return post;
  const bool stripes = request->mode.create && !request->plain &&
                       wants_striping(with_directory_default(request->hints, request->path));
  post.facts.stripes = stripes ? 1 : 0;
  post.facts.close_to_open = static_cast<std::uint64_t>(request->hints.shima_close_to_open);
  return post;
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
  constexpr auto join_facts = [](const CacheFacts& a, const CacheFacts& b) { return join(a, b); };
  SHIMA_TRY_ASSIGN(const CacheFacts all, combine_values<join_facts>(channel, mine));
  return caches_between(all, told_apart);
}

// Collective; an error may be this member's alone.
Result<Agreed> agree_in(Channel& channel, const OpenFacts& all, const OpenPost& post,
                        const OpenRequest& mine) {
  SHIMA_TRY_ASSIGN(Hints hints, first_hints(channel, all.hints, post.hints));
  return caught([&]() -> Result<Agreed> {
    return Agreed{{mine.path, mine.mode, std::move(hints), mine.plain},
                  all.stripes != 0,
                  all.wants_stats != 0};
  });
}

// The same on all members: how often this process has opened the name, and the name.
std::uint64_t open_key(const Result<OpenRequest>& request) {
  static constinit std::array<std::atomic<std::uint32_t>, 256> opens{};
  if (!request) return 0;
  const std::size_t name = std::hash<std::string>{}(request->path);
  return name * 31 + ++opens[name % opens.size()];
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
                                         const Result<OpenRequest>& request, Prepare prepare) {
  Channel& channel = *owner;
  BoardFile shown(request ? std::string_view(request->path) : std::string_view(),
                  open_key(request));
  const Doing now(call::file_open, &shown);
  count(Counted::open);
  const auto mine = caught([&] { return post_of(channel, request); });
  constexpr auto join_facts = [](const OpenFacts& a, const OpenFacts& b) { return join(a, b); };
  const auto facts = mine ? Result<OpenFacts>(mine->facts) : std::unexpected(mine.error());
  SHIMA_TRY_ASSIGN(const OpenFacts all, combine_values<join_facts>(channel, facts));
  if (!all.mode_bits.equal())
    return fail_settled(Code::not_same, 0, [&] {
      return fmt::format("opening {}: {}s gave different access modes", request->path,
                         channel.member_word());
    });
  const auto agreed = agree_in(channel, all, *mine, *request);
  const bool one_creates = request->mode.create && (request->mode.exclusive || all.stripes != 0);
  const bool first_here = one_creates && channel.rank() == 0;
  std::optional<Result<LogicalFile>> own;
  if (first_here) own = take_step(agreed, Step::create_first);
  if (one_creates)
    SHIMA_TRY(
        agree_on(channel, own ? status_of(*own) : status_of(agreed), "creating", request->path));
  if (!own) own = take_step(agreed, one_creates ? Step::open_there : Step::open_or_create);
  Result<LogicalFile>& file = *own;
  fault_point(FaultPhase::open_agree);
  const auto caches = caches_of(channel, file, static_cast<Toggle>(all.close_to_open));
  // All steps that may fail are before the agreement.
  auto joint = caught([&]() -> Result<std::unique_ptr<JointFile>> {
    SHIMA_TRY(status_of(file));
    SHIMA_TRY(status_of(caches));
    const bool may_help = channel.size() == 1 && usable_cores() > 1;
    auto made =
        std::make_unique<JointFile>(channel, *std::move(file), agreed->request,
                                    JointFile::Facts{agreed->wants_stats, *caches, may_help});
    SHIMA_TRY(prepare(*made));
    return made;
  });
  SHIMA_TRY(agree_on(channel, status_of(joint), "opening", request->path));
  (*joint)->own(std::move(owner));
  (*joint)->show_as(std::move(shown));
  return joint;
}

}  // namespace shima
