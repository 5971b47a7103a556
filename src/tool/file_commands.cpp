// create, rm, mv, cat.
#include "tool/file_commands.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>

#include "file/folder_default.h"
#include "file/striping.h"
#include "store/logical_file.h"
#include "store/master_store.h"
#include "store/text_file.h"
#include "tool/complaint.h"
#include "tool/copying.h"

namespace shima::tool {
namespace {

Status replace_text(const std::string& path, const std::string& text) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return failed("opening", folder);
  return write_whole(fd.get(), std::filesystem::path(path).filename().string(), text, 0666, path);
}

Outcome<int> write_folder_default(const CreateOptions& options) {
  auto hints = stripe_hints(options.stripe);
  if (hints) hints = with_some_targets(*hints);
  if (!hints) return std::unexpected(hints.error());
  if (const auto regions = regions_for(*hints); !regions)
    return std::unexpected(failure_of(options.folder_default, regions.error()));
  const auto path = std::filesystem::path(options.folder_default) / folder_default_name;
  return succeeded(path.string(), replace_text(path.string(), encode_folder_default(*hints)))
             ? 0
             : exit_failed;
}

Status cat(const std::string& path) {
  SHIMA_TRY_ASSIGN(auto file, LogicalFile::open({.path = path, .read = true}));
  std::vector<char> window(std::size_t{4} << 20);
  for (FileOffset at{0};;) {
    SHIMA_TRY_ASSIGN(const std::uint64_t found, file.read(at, window.data(), window.size()));
    SHIMA_TRY(write_all(STDOUT_FILENO, {window.data(), found}, "the standard output"));
    if (found < window.size()) return {};
    at = at + as_signed(found);
  }
}

}  // namespace

Outcome<int> create_files(const CreateOptions& options) {
  if (!options.folder_default.empty()) return write_folder_default(options);
  if (options.files.empty())
    return refuse("shima create", "no file is named", "name a file, or --default and a folder");
  auto given = stripe_hints(options.stripe);
  if (!given) return std::unexpected(given.error());
  bool good = true;
  for (const std::string& path : options.files) {
    auto hints = with_some_targets(with_folder_default(*given, path));
    if (!hints) return std::unexpected(hints.error());
    auto regions = regions_for(*hints);
    if (!regions) return std::unexpected(failure_of(path, regions.error()));
    good = succeeded(
               path,
               create_striped({.path = path, .regions = *std::move(regions), .exclusive = true})) &&
           good;
  }
  return good ? 0 : exit_failed;
}

Outcome<int> print_files(const Paths& paths) {
  bool good = true;
  for (const std::string& path : paths) good = succeeded(path, cat(path)) && good;
  return good ? 0 : exit_failed;
}

Outcome<int> remove_files(const Paths& paths, bool force) {
  bool good = true;
  for (const std::string& path : paths) {
    const Status removed = remove_file(path);
    if (force && !removed && removed.error().code == Code::no_such_file) {
      struct stat facts{};
      if (::lstat(path.c_str(), &facts) != 0 && errno == ENOENT) continue;
    }
    good = succeeded(path, removed) && good;
  }
  return good ? 0 : exit_failed;
}

Outcome<int> move_files(const Paths& paths) {
  auto pairs = pair_up(paths, "mv");
  if (!pairs) return std::unexpected(pairs.error());
  bool good = true;
  for (const auto& [from, to] : *pairs) good = succeeded(from, rename_file(from, to)) && good;
  return good ? 0 : exit_failed;
}

}  // namespace shima::tool
