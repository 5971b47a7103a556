#include "store/striped/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

namespace shima {
namespace {

Status make_subfile(const Target& target, const std::string& name, mode_t mode) {
  Status made = target.files().make(name, mode);
  if (!made) made.error().what = "target " + target.name() + ": " + made.error().what;
  return made;
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

Result<MasterCopy> read_copy(const Target& target, const FileId& id) {
  const std::string name = copy_name(id);
  SHIMA_TRY_ASSIGN(const TargetFiles::Text found,
                   target.files().read_text(name, 2 * largest_master_bytes));
  SHIMA_TRY_ASSIGN(MasterCopy copy, decode_copy(found.text));
  if (copy.master.id != id)
    return fail(Code::bad_file, target.directory() + "/" + name + " is another file's copy");
  copy.owner = found.owner;
  return copy;
}

Status make_parts(const MasterFile& master, const std::string& path, mode_t mode,
                  const std::vector<Target>& targets) {
  // Copies first: only a copy identifies the file that the other parts belong to.
  Status status = write_copies(master, path, mode, targets);
  for (const Part& part : parts_of(master, targets))
    if (status && subfile_index(part.name)) status = make_subfile(*part.target, part.name, mode);
  if (!status) std::ignore = remove_parts(master, targets);
  return status;
}

Status write_copies(const MasterFile& master, const std::string& path, mode_t mode,
                    const std::vector<Target>& targets) {
  const std::string text = encode_copy({master, path});
  for (const Target& target : targets)
    SHIMA_TRY(target.files().write_text(copy_name(master.id), text, mode));
  return {};
}

Status remove_if_there(const Target& target, const std::string& name) {
  const Status removed = target.files().remove(name);
  return removed || removed.error().sys_errno == ENOENT ? Status{} : removed;
}

Status remove_parts(const MasterFile& master, const std::vector<Target>& targets) {
  std::vector<Part> parts = parts_of(master, targets);
  for (const Target& target : targets) parts.push_back({&target, record_name(master.id)});
  for (const Part& part : parts) SHIMA_TRY(remove_if_there(*part.target, part.name));
  return {};
}

Status truncate_subfiles(const MasterFile& master, std::uint64_t size_bytes,
                         const std::vector<Target>& targets) {
  SHIMA_TRY_ASSIGN(const Layout layout, layout_of(master));
  const std::vector<Part> parts = parts_of(master, targets);
  for (int i = 0; i < layout.subfile_count(); ++i) {
    const Part& part = parts[static_cast<std::size_t>(i)];
    const TargetOffset share = layout.below(i, FileOffset{as_signed(size_bytes)});
    SHIMA_TRY(part.target->files().truncate(part.name, as_unsigned(share.value)));
  }
  return {};
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
