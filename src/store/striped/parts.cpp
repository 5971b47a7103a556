#include "store/striped/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <span>

#include "store/subfile/file_steps.h"

namespace shima {
namespace {

using Step = TargetFiles::Step;
using StepResult = TargetFiles::StepResult;

// Steps on the parts of a file, taken on all targets at once.
class PartSteps {
 public:
  void add(const Target& target, Step step) {
    all_.push_back({&target.files(), std::move(step)});
    targets_.push_back(&target);
  }

  // The results in the order of the steps.
  [[nodiscard]] std::vector<StepResult> take() const { return take_steps(all_); }

  // For steps that change something: the first failure, which names its target.
  [[nodiscard]] Status change() const {
    const auto results = take();
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i].done) continue;
      const Error& error = results[i].done.error();
      return fail(error.code, "target " + targets_[i]->name() + ": " + error.what, error.sys_errno);
    }
    return {};
  }

 private:
  std::vector<StepOn> all_;
  std::vector<const Target*> targets_;  // of the steps
};

Step copy_step(const MasterFile& master, std::string_view text, mode_t mode) {
  return {.kind = Step::Kind::write_text, .name = copy_name(master.id), .text = text, .mode = mode};
}

Step reading_step(std::string name) {
  return {
      .kind = Step::Kind::read_text, .name = std::move(name), .bytes = 2 * largest_master_bytes};
}

}  // namespace

std::string subfile_name(const FileId& id, int index) {
  return fmt::format("{}.{}", id.hex, index);
}

std::string copy_name(const FileId& id) { return id.hex + ".master"; }

std::string record_name(const FileId& id) { return id.hex + ".restripe"; }

bool is_part_name(std::string_view name) {
  return name.size() > file_id_digits + 1 && is_file_id(name.substr(0, file_id_digits)) &&
         name[file_id_digits] == '.' &&
         (subfile_index(name) || name.ends_with(".master") || name.ends_with(".restripe"));
}

std::optional<int> subfile_index(std::string_view part_name) {
  const std::string_view digits = part_name.substr(file_id_digits + 1);
  int index = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (error != std::errc{} || end != digits.data() + digits.size()) return {};
  return index;
}

std::string encode_copy(const MasterCopy& copy) {
  return encode_master(copy.master) + fmt::format("path {}\n", encode_path(copy.path));
}

Result<MasterCopy> decode_copy(std::string_view text) {
  constexpr std::string_view key = "\npath ";
  const std::size_t at = text.rfind(key);
  if (at == std::string_view::npos || !text.ends_with('\n'))
    return fail(Code::bad_file, "the copy of a master file is truncated");
  SHIMA_TRY_ASSIGN(MasterFile master, decode_master(text.substr(0, at + 1)));
  const std::string_view word = text.substr(at + key.size());
  const auto path = decode_path(word.substr(0, word.size() - 1));
  if (!path) return fail(Code::bad_file, "the copy of a master file has no path");
  return MasterCopy{std::move(master), *path, {}};
}

namespace {

Result<MasterCopy> copy_in(const StepResult& read, const Target& target, const FileId& id) {
  SHIMA_TRY(read.done);
  SHIMA_TRY_ASSIGN(MasterCopy copy, decode_copy(read.text.text));
  if (copy.master.id != id)
    return fail(Code::bad_file,
                target.directory() + "/" + copy_name(id) + " is another file's copy");
  copy.owner = read.text.owner;
  return copy;
}

}  // namespace

Result<MasterCopy> read_copy(const Target& target, const FileId& id) {
  const Step reading = reading_step(copy_name(id));
  return copy_in(take_steps(target.files(), std::span(&reading, 1)).front(), target, id);
}

Status make_parts(const MasterFile& master, const std::string& path, mode_t mode,
                  const std::vector<Target>& targets) {
  const std::string text = encode_copy({master, path});
  PartSteps steps;
  // Copies first: only a copy identifies the file that the other parts on its target belong to.
  for (const Target& target : targets) steps.add(target, copy_step(master, text, mode));
  for (const Part& part : parts_of(master, targets))
    if (subfile_index(part.name))
      steps.add(*part.target, {.kind = Step::Kind::make, .name = part.name, .mode = mode});
  Status status = steps.change();
  if (!status) std::ignore = remove_parts(master, targets);
  return status;
}

Status write_copies(const MasterFile& master, const std::string& path, mode_t mode,
                    const std::vector<Target>& targets) {
  const std::string text = encode_copy({master, path});
  PartSteps steps;
  for (const Target& target : targets) steps.add(target, copy_step(master, text, mode));
  return steps.change();
}

Status remove_parts(const MasterFile& master, const std::vector<Target>& targets) {
  PartSteps steps;
  for (const Part& part : parts_of(master, targets))
    steps.add(*part.target, {.kind = Step::Kind::remove, .name = part.name});
  for (const Target& target : targets)
    steps.add(target, {.kind = Step::Kind::remove, .name = record_name(master.id)});
  return steps.change();
}

Status truncate_subfiles(const MasterFile& master, std::uint64_t size_bytes,
                         const std::vector<Target>& targets) {
  SHIMA_TRY_ASSIGN(const Layout layout, layout_of(master));
  const std::vector<Part> parts = parts_of(master, targets);
  PartSteps steps;
  for (int i = 0; i < layout.subfile_count(); ++i) {
    const Part& part = parts[static_cast<std::size_t>(i)];
    const TargetOffset share = layout.below(i, FileOffset{as_signed(size_bytes)});
    steps.add(*part.target,
              {.kind = Step::Kind::set_size, .name = part.name, .bytes = as_unsigned(share.value)});
  }
  return steps.change();
}

Result<PartsSeen> look_at_parts(const MasterFile& master, const std::vector<Target>& targets,
                                Look what) {
  std::vector<Part> parts = parts_of(master, targets);
  const Target& home = *parts.front().target;
  const bool has_copies = what != Look::subfiles;
  const bool has_record = what == Look::parts_and_record;
  if (what == Look::copies) parts.clear();
  if (what == Look::subfiles) parts.resize(parts.size() - targets.size());
  PartSteps steps;
  for (const Target& target : targets) {
    if (!target.is_asked()) steps.add(target, Target::asking_step(Target::Purpose::use));
    if (has_copies) steps.add(target, reading_step(copy_name(master.id)));
  }
  for (const Part& part : parts)
    steps.add(*part.target, {.kind = Step::Kind::examine, .name = part.name});
  if (has_record) steps.add(home, reading_step(record_name(master.id)));

  const auto results = steps.take();
  auto next = results.begin();
  PartsSeen seen;
  for (const Target& target : targets) {
    if (!target.is_asked())
      if (const Status& asked = (next++)->done; !asked) return target.refusal(asked.error());
    if (has_copies) seen.copies.push_back(copy_in(*next++, target, master.id));
  }
  for (; seen.facts.size() < parts.size(); ++next)
    seen.facts.push_back(next->done ? Result<struct stat>(next->facts)
                                    : std::unexpected(next->done.error()));
  if (has_record)
    seen.record =
        next->done ? Result<std::string>(next->text.text) : std::unexpected(next->done.error());
  return seen;
}

std::vector<Part> parts_of(const MasterFile& master, const std::vector<Target>& targets) {
  std::vector<Part> parts;
  int index = 0;
  for (const std::string& name : master.targets())
    parts.push_back({&target_called(targets, name), subfile_name(master.id, index++)});
  for (const Target& target : targets) parts.push_back({&target, copy_name(master.id)});
  return parts;
}

}  // namespace shima
