#include "store/target/paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "store/remote/place.h"
#include "store/remote/remote_tree.h"
#include "store/target/local_tree.h"
#include "store/target/target.h"

namespace shima {
namespace {

namespace fs = std::filesystem;

constexpr const char* map_variable = "SHIMA_PATHS";

struct Mapped {
  std::string prefix;  // normal, without a slash at its end
  std::string place;   // the same
};

std::string without_last_slashes(std::string text) {
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

Result<std::vector<Mapped>> parse_map(std::string_view text) {
  std::vector<Mapped> all;
  while (!text.empty()) {
    const std::string_view entry = text.substr(0, remote::first_entry(text));
    text.remove_prefix(std::min(entry.size() + 1, text.size()));
    if (entry.empty()) continue;
    const std::size_t equals = std::min(entry.find('='), entry.size());
    const fs::path prefix(entry.substr(0, equals));
    const std::string place(entry.substr(std::min(equals + 1, entry.size())));
    if (!prefix.is_absolute() || !remote::parse_far_path(place))
      return fail(Code::bad_argument,
                  fmt::format("{}: \"{}\" is not of the form /DIRECTORY=iod://HOST:PORT/NAME",
                              map_variable, entry));
    all.push_back(
        {without_last_slashes(prefix.lexically_normal().string()), without_last_slashes(place)});
  }
  return all;
}

}  // namespace

FileTree& tree_at(const std::string& path) {
  static const auto remote = remote::make_remote_tree(iod_key_file);
  return is_on_node(path) ? *remote : local_tree();
}

bool is_on_node(std::string_view path) { return path.starts_with(remote::scheme); }

Result<std::string> path_meant_by(const std::string& name) {
  const char* const text = std::getenv(map_variable);
  if (text == nullptr || *text == '\0' || is_on_node(name)) return name;
  SHIMA_TRY_ASSIGN(const auto all, parse_map(text));
  const std::string path = fs::path(name_from_anywhere(name)).lexically_normal().string();
  const Mapped* best = nullptr;
  for (const Mapped& one : all) {
    const bool is_below = path == one.prefix || path.starts_with(one.prefix + "/");
    if (is_below && (best == nullptr || best->prefix.size() < one.prefix.size())) best = &one;
  }
  return best == nullptr ? name : best->place + path.substr(best->prefix.size());
}

std::string name_from_anywhere(const std::string& path) {
  if (is_on_node(path)) return path;
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  return error ? path : absolute.string();
}

Result<std::string> real_path_of(const std::string& path) { return tree_at(path).real_path(path); }

Result<std::string> real_name_of(const std::string& path) {
  SHIMA_TRY_ASSIGN(const std::string real, real_path_of(directory_of_path(path)));
  return (fs::path(real) / fs::path(path).filename()).string();
}

Result<std::string> real_or_new_path_of(const std::string& path) {
  if (!is_on_node(path)) {
    std::error_code error;
    const auto real = fs::weakly_canonical(fs::absolute(path), error);
    if (error)
      return fail(code_of_errno(error.value()), "finding the directory of " + path, error.value());
    return real.string();
  }
  auto real = real_path_of(path);
  return real || real.error().sys_errno != ENOENT ? real : real_name_of(path);
}

bool exists_at(const std::string& path) {
  return tree_at(path).examine(path, FileTree::Links::follow).has_value();
}

bool is_directory_at(const std::string& path) {
  const auto facts = tree_at(path).examine(path, FileTree::Links::follow);
  return facts && S_ISDIR(facts->st_mode);
}

bool are_same_file(const struct stat& a, const struct stat& b) {
  return a.st_ino == b.st_ino && (a.st_dev == b.st_dev || (a.st_ctim.tv_sec == b.st_ctim.tv_sec &&
                                                           a.st_ctim.tv_nsec == b.st_ctim.tv_nsec));
}

bool are_same_file(const std::string& a, const std::string& b) {
  const auto one = tree_at(a).examine(a, FileTree::Links::follow);
  const auto other = tree_at(b).examine(b, FileTree::Links::follow);
  if (!one || !other || one->st_ino != other->st_ino) return false;
  // Both ways are local: then equal times prove nothing.
  return one->st_dev == other->st_dev ||
         (is_on_node(a) != is_on_node(b) && are_same_file(*one, *other));
}

std::string directory_of_path(const std::string& path) {
  const std::string directory = fs::path(path).parent_path().string();
  return directory.empty() ? "." : directory;
}

}  // namespace shima
