#include "store/striped/parts.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "store/target/text_file.h"

namespace shima {
namespace {

Status make_subfile(const Target& target, const std::string& name, mode_t mode) {
  const UniqueFd fd(::openat(target.fd(), name.c_str(),
                             O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
  if (!fd)
    return failed("creating a subfile on target " + target.name() + ",",
                  target.directory() + "/" + name);
  return {};
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
  const std::string path = target.directory() + "/" + name;
  const UniqueFd fd(
      ::openat(target.fd(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd) return failed("reading", path);
  struct stat facts{};
  if (::fstat(fd.get(), &facts) != 0) return failed("examining", path);
  SHIMA_TRY_ASSIGN(const std::string text, read_up_to(fd.get(), 2 * largest_master_bytes, path));
  SHIMA_TRY_ASSIGN(MasterCopy copy, decode_copy(text));
  if (copy.master.id != id) return fail(Code::bad_file, path + " is another file's copy");
  copy.owner = facts.st_uid;
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
  for (const Target& target : targets) {
    const std::string name = copy_name(master.id);
    SHIMA_TRY(write_whole(target.fd(), name, text, mode, target.directory() + "/" + name));
  }
  return {};
}

Status remove_parts(const MasterFile& master, const std::vector<Target>& targets) {
  std::vector<Part> parts = parts_of(master, targets);
  for (const Target& target : targets) parts.push_back({&target, record_name(master.id)});
  for (const Part& part : parts)
    if (::unlinkat(part.target->fd(), part.name.c_str(), 0) != 0 && errno != ENOENT)
      return failed("removing", part.path());
  return {};
}

Status truncate_subfiles(const MasterFile& master, std::uint64_t size_bytes,
                         const std::vector<Target>& targets) {
  SHIMA_TRY_ASSIGN(const Layout layout, layout_of(master));
  const std::vector<Part> parts = parts_of(master, targets);
  for (int i = 0; i < layout.subfile_count(); ++i) {
    const Part& part = parts[static_cast<std::size_t>(i)];
    const UniqueFd fd(
        ::openat(part.target->fd(), part.name.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!fd || ::ftruncate(fd.get(), layout.below(i, FileOffset{as_signed(size_bytes)}).value) != 0)
      return failed("setting the size of", part.path());
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
