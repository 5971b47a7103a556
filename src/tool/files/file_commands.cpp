// create, rm, mv, cat.
#include "tool/files/file_commands.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>

#include "file/directory_default.h"
#include "file/striping.h"
#include "store/striped/logical_file.h"
#include "store/striped/master_store.h"
#include "store/target/own_directory.h"
#include "store/target/text_file.h"
#include "tool/common/print_failure.h"
#include "tool/files/copying.h"

namespace shima::tool {
namespace {

Status replace_text(const std::string& path, const std::string& text) {
  const std::string directory = std::filesystem::path(path).parent_path().string();
  const UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return failed("opening", directory);
  return write_whole(fd.get(), std::filesystem::path(path).filename().string(), text, 0666, path);
}

Outcome<int> write_directory_default(const CreateOptions& options) {
  auto hints = stripe_hints(options.stripe);
  if (hints) hints = with_some_targets(*hints);
  if (!hints) return std::unexpected(hints.error());
  if (const auto regions = regions_for(*hints); !regions)
    return std::unexpected(failure_of(options.directory_default, regions.error()));
  const auto path = std::filesystem::path(options.directory_default) / directory_default_name;
  return succeeded(path.string(), replace_text(path.string(), encode_directory_default(*hints)))
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

Status remove_directory(const std::string& path) {
  if (::rmdir(path.c_str()) != 0) return failed("removing", path);
  return {};
}

// Removes .shima from a directory without files. Parts that remain in it belong to no file of the
// directory; fsck reports them.
Status remove_own_directory_in(const std::string& directory) {
  struct stat facts{};
  if (::lstat(own_directory_of(directory).c_str(), &facts) != 0) return {};
  const UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return failed("opening", directory);
  return remove_own_directory(fd.get(), directory);
}

Status remove_all(const std::string& path) {
  struct stat facts{};
  if (::lstat(path.c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode)) return remove_file(path);
  std::vector<std::string> entries;
  std::error_code error;
  for (std::filesystem::directory_iterator at(path, error);
       !error && at != std::filesystem::directory_iterator(); at.increment(error))
    if (at->path().filename() != own_directory_name) entries.push_back(at->path().string());
  if (error) return fail_errno(error.value(), "listing " + path);
  for (const std::string& entry : entries) SHIMA_TRY(remove_all(entry));
  SHIMA_TRY(remove_own_directory_in(path));
  return remove_directory(path);
}

}  // namespace

Outcome<int> create_files(const CreateOptions& options) {
  if (!options.directory_default.empty()) return write_directory_default(options);
  if (options.files.empty())
    return refuse("shima create", "no file is named", "name a file, or a directory with --default");
  auto given = stripe_hints(options.stripe);
  if (!given) return std::unexpected(given.error());
  bool good = true;
  for (const std::string& path : options.files) {
    auto hints = with_some_targets(with_directory_default(*given, path));
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

Outcome<int> remove_files(const RemoveOptions& options) {
  bool good = true;
  for (const std::string& path : options.files) {
    const Status removed = options.recursive ? remove_all(path) : remove_file(path);
    if (options.force && !removed && removed.error().code == Code::no_such_file) {
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
