// stat and ls: a description of each file, as JSON or as text.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "store/striped/logical_file.h"
#include "store/striped/master_store.h"
#include "store/target/paths.h"
#include "tool/common/print_failure.h"
#include "tool/common/progress.h"
#include "tool/files/file_commands.h"

namespace shima::tool {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

std::string mode_text(mode_t mode) {
  constexpr std::string_view letters = "rwxrwxrwx";
  std::string text(1, S_ISDIR(mode)    ? 'd'
                      : S_ISLNK(mode)  ? 'l'
                      : S_ISFIFO(mode) ? 'p'
                      : S_ISSOCK(mode) ? 's'
                      : S_ISCHR(mode)  ? 'c'
                      : S_ISBLK(mode)  ? 'b'
                                       : '-');
  for (std::size_t i = 0; i < letters.size(); ++i)
    text += (mode >> (8 - i) & 1U) != 0 ? letters[i] : '-';
  return text;
}

ordered_json describe_subfiles(const LogicalFile& file, const std::vector<std::uint64_t>& sizes) {
  ordered_json list = ordered_json::array();
  const auto names = file.master()->targets();
  for (std::size_t i = 0; i < names.size(); ++i)
    list.push_back({{"target", names[i]},
                    {"name", subfile_name(file.master()->id, static_cast<int>(i))},
                    {"bytes", sizes[i]}});
  return list;
}

ordered_json describe_regions(const MasterFile& master) {
  ordered_json list = ordered_json::array();
  for (const StripedRegion& region : master.regions)
    list.push_back(
        {{"begin", region.begin.value}, {"unit", region.unit_bytes}, {"targets", region.targets}});
  return list;
}

enum class Depth : std::uint8_t { brief, full };

Result<ordered_json> describe(const std::string& path, Depth depth) {
  SHIMA_TRY_ASSIGN(struct stat facts, tree_at(path).examine(path, FileTree::Links::keep));
  ordered_json object{{"path", path},
                      {"kind", "plain"},
                      {"size", facts.st_size},
                      {"mode", fmt::format("{:04o}", facts.st_mode & 07777U)}};
  object["text_mode"] = mode_text(facts.st_mode);
  if (S_ISDIR(facts.st_mode)) object["kind"] = "directory";
  if (S_ISLNK(facts.st_mode)) object["kind"] = "link";
  if (S_ISLNK(facts.st_mode) && depth == Depth::full) {
    SHIMA_TRY_ASSIGN(facts, tree_at(path).examine(path, FileTree::Links::follow));
  }
  // Opening a FIFO or a device could block.
  if (!S_ISREG(facts.st_mode)) {
    if (object["kind"] == "plain") object["kind"] = "special";
    return object;
  }
  SHIMA_TRY_ASSIGN(const auto master, read_master(path));
  if (!master) {
    object["size"] = facts.st_size;
    return object;
  }
  SHIMA_TRY_ASSIGN(auto file, LogicalFile::open({.path = path, .read = true}));
  SHIMA_TRY_ASSIGN(const FileOffset size, file.size());
  object["size"] = size.value;
  if (file.master() == nullptr) return object;
  object["kind"] = "striped";
  object["subfiles"] = file.master()->targets().size();
  if (depth == Depth::brief) return object;
  object["id"] = file.master()->id.hex;
  object["regions"] = describe_regions(*file.master());
  SHIMA_TRY_ASSIGN(const auto sizes, file.subfile_sizes());
  object["subfiles"] = describe_subfiles(file, sizes);
  return object;
}

std::string word(const ordered_json& object, const char* key) {
  return object.at(key).get<std::string>();
}

std::string text_of(const ordered_json& object) {
  const auto size = object.at("size").get<std::int64_t>();
  std::string text =
      fmt::format("{}\n  {}, {} bytes ({}), mode {}\n", word(object, "path"), word(object, "kind"),
                  size, human_bytes(static_cast<double>(size)), word(object, "mode"));
  if (!object.contains("regions")) return text;
  text += fmt::format("  id {}\n", word(object, "id"));
  for (const auto& region : object.at("regions"))
    text += fmt::format("  from {}: unit {} over {}\n", region.at("begin").get<std::int64_t>(),
                        region.at("unit").get<std::uint64_t>(),
                        fmt::join(region.at("targets").get<std::vector<std::string>>(), " "));
  for (const auto& subfile : object.at("subfiles"))
    text += fmt::format("  {:>16} bytes  {}/{}\n", subfile.at("bytes").get<std::uint64_t>(),
                        word(subfile, "target"), word(subfile, "name"));
  return text;
}

std::string line_of(const ordered_json& object) {
  const std::string stripes =
      object.contains("subfiles") ? fmt::format("{}x", object.at("subfiles").get<int>()) : "";
  return fmt::format("{} {:>5} {:>16} {}\n", word(object, "text_mode"), stripes,
                     object.at("size").get<std::int64_t>(), word(object, "path"));
}

// The names to list in a directory, without Shima's own.
Result<std::vector<std::string>> names_in(const std::string& directory) {
  std::vector<std::string> names;
  SHIMA_TRY_ASSIGN(const auto entries, tree_at(directory).entries(directory));
  for (const FileTree::Entry& entry : entries)
    if (!entry.name.starts_with('.')) names.push_back((fs::path(directory) / entry.name).string());
  std::ranges::sort(names);
  return names;
}

Outcome<int> show(const Paths& paths, bool as_json, Depth depth,
                  std::string (*text)(const ordered_json&)) {
  ordered_json all = ordered_json::array();
  bool good = true;
  for (const std::string& path : paths) {
    auto object = describe(path, depth);
    if (!object) {
      good = succeeded(path, std::unexpected(object.error()));
    } else if (as_json) {
      object->erase("text_mode");
      all.push_back(*std::move(object));
    } else {
      std::fputs(text(*object).c_str(), stdout);
    }
  }
  if (as_json) fmt::print("{}\n", all.dump(2));
  return good ? 0 : exit_failed;
}

}  // namespace

Outcome<int> describe_files(const Paths& paths, bool as_json) {
  return show(paths, as_json, Depth::full, text_of);
}

Outcome<int> list_files(const Paths& paths, bool as_json) {
  Paths all;
  bool good = true;
  for (const std::string& path : paths.empty() ? Paths{"."} : paths) {
    if (!is_directory_at(path)) {
      all.push_back(path);
      continue;
    }
    auto names = names_in(path);
    if (names) {
      std::ranges::move(*names, std::back_inserter(all));
    } else {
      good = succeeded(path, std::unexpected(names.error()));
    }
  }
  const auto shown = show(all, as_json, Depth::brief, line_of);
  return good ? shown : exit_failed;
}

}  // namespace shima::tool
