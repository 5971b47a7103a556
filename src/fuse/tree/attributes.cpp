// The attributes of a striped file: owner and permissions are the master file's, the size follows
// from the subfiles' sizes, times are the latest of the subfiles, storage is the sum. The master
// file's own times only show its last truncation or rename.
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <ctime>

#include "fuse/tree/errors.h"
#include "fuse/tree/tree.h"
#include "store/striped/parts.h"
#include "store/subfile/file_steps.h"

namespace shima::fuse {
namespace {

constexpr blksize_t preferred_bytes = 1 << 20;  // one request of the kernel

void take_later(timespec& mine, const timespec& other) {
  if (std::pair(other.tv_sec, other.tv_nsec) > std::pair(mine.tv_sec, mine.tv_nsec)) mine = other;
}

std::uint64_t nanoseconds(const timespec& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(time.tv_nsec);
}

// The master file is replaced by rename, so its inode number does not identify the file.
ino_t number_of(const FileId& id) {
  ino_t number = 0;
  std::from_chars(id.hex.data(), id.hex.data() + 15, number, 16);
  return number | (ino_t{1} << 60);
}

}  // namespace

Result<std::vector<struct stat>> Tree::subfile_facts(Node& node) {
  std::vector<struct stat> all;
  StripedParts& parts = node.parts();
  {
    const std::lock_guard lock(parts.mutex);
    for (const UniqueFd& fd : parts.subfiles)
      SHIMA_TRY(done(::fstat(fd.get(), &all.emplace_back())));
    // An open file that was removed, on I/O nodes: they find parts by name only.
    if (all.empty() && parts.removed && !parts.known.empty()) return parts.known;
  }
  if (!all.empty()) return all;
  SHIMA_TRY_ASSIGN(const auto targets, targets_of(node));
  SHIMA_TRY_ASSIGN(const auto striped, description(node));
  std::vector<StepOn> steps;
  for (std::size_t i = 0; i < targets.size(); ++i)
    steps.push_back(
        {&targets[i]->files(), {.name = subfile_name(striped->master.id, static_cast<int>(i))}});
  for (std::size_t i = 0; const TargetFiles::StepResult& found : take_steps(steps)) {
    if (!found.done && found.done.error().code == Code::io)
      return std::unexpected(found.done.error());
    if (!found.done)
      return fail(Code::io, fmt::format("subfile {}/{} is missing; shima fsck reports details",
                                        targets[i]->directory(), steps[i].step.name));
    all.push_back(found.facts);
    ++i;
  }
  const std::lock_guard lock(parts.mutex);
  parts.known = all;
  return all;
}

struct stat striped_facts(const Striped& striped, const struct stat& master,
                          std::span<const struct stat> subfiles) {
  struct stat facts = master;
  std::vector<std::uint64_t> sizes;
  facts.st_blocks = 0;
  facts.st_atim = subfiles.front().st_atim;
  facts.st_mtim = subfiles.front().st_mtim;
  for (const struct stat& subfile : subfiles) {
    sizes.push_back(as_unsigned(subfile.st_size));
    facts.st_blocks += subfile.st_blocks;
    take_later(facts.st_atim, subfile.st_atim);
    take_later(facts.st_mtim, subfile.st_mtim);
    take_later(facts.st_ctim, subfile.st_ctim);
  }
  facts.st_size = striped.layout.end_of_file(sizes).value;
  facts.st_blksize = preferred_bytes;
  facts.st_ino = number_of(striped.master.id);
  return facts;
}

Result<struct stat> Tree::striped_attributes(Node& node) {
  SHIMA_TRY_ASSIGN(const auto striped, description(node));
  SHIMA_TRY_ASSIGN(const auto subfiles, subfile_facts(node));
  struct stat master{};
  {
    const std::lock_guard lock(node.parts().mutex);
    master = node.parts().seen;
    master.st_nlink = node.parts().removed ? 0 : 1;
  }
  return striped_facts(*striped, master, subfiles);
}

Result<struct stat> Tree::attributes(Node& node) {
  if (node.kind == Node::Kind::striped) return striped_attributes(node);
  struct stat facts{};
  SHIMA_TRY(done(::fstat(node.fd(), &facts)));
  if (S_ISREG(facts.st_mode)) facts.st_blksize = preferred_bytes;
  return facts;
}

// A file that changed a moment ago may change again without a visible change of its times.
bool Tree::changed_unnoticed(Node& node, const struct stat& facts) {
  constexpr std::time_t coarsest_clock_s = 2;
  Freshness& fresh = node.freshness();
  if (!fresh.unnoticed) return false;
  const std::uint64_t version =
      nanoseconds(facts.st_mtim) * 31 + nanoseconds(facts.st_ctim) * 7 + as_unsigned(facts.st_size);
  const bool other = fresh.version.exchange(version) != version;
  const bool recent = facts.st_mtim.tv_sec + coarsest_clock_s >= ::time(nullptr);
  if (!other && !recent) return false;
  ++fresh.changes;
  return true;
}

}  // namespace shima::fuse
