// create, rm, mv, cat.
#include "tool/files/file_commands.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "file/hints/directory_default.h"
#include "file/striping.h"
#include "store/striped/logical_file.h"
#include "store/striped/master_store.h"
#include "store/target/own_directory.h"
#include "store/target/paths.h"
#include "store/target/text_file.h"
#include "tool/common/print_failure.h"
#include "tool/files/copying.h"

namespace shima::tool {
namespace {

Outcome<int> write_directory_default(const CreateOptions& options) {
  auto hints = stripe_hints(options.stripe);
  if (hints) hints = with_some_targets(*hints);
  if (!hints) return std::unexpected(hints.error());
  if (const auto regions = regions_for(*hints); !regions)
    return std::unexpected(failure_of(options.directory_default, regions.error()));
  const std::string path =
      (std::filesystem::path(options.directory_default) / directory_default_name).string();
  const Status written = tree_at(path).write_text(path, encode_directory_default(*hints), 0666);
  return succeeded(path, written) ? 0 : exit_failed;
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

// Parts that remain in .shima belong to no file of the directory; fsck reports them.
Status remove_all(const std::string& path) {
  FileTree& tree = tree_at(path);
  const auto facts = tree.examine(path, FileTree::Links::keep);
  if (!facts || !S_ISDIR(facts->st_mode)) return remove_file(path);
  SHIMA_TRY_ASSIGN(const auto entries, tree.entries(path));
  for (const FileTree::Entry& entry : entries)
    if (entry.name != own_directory_name)
      SHIMA_TRY(remove_all((std::filesystem::path(path) / entry.name).string()));
  SHIMA_TRY(tree.remove_own_directory(path));
  return tree.remove_directory(path);
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
      const auto facts = tree_at(path).examine(path, FileTree::Links::keep);
      if (!facts && facts.error().sys_errno == ENOENT) continue;
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
