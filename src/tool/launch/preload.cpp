// LD_PRELOAD, in this order: a sanitizer's runtime (must be the first library of a process), what
// was there before (Darshan wraps us, not we it), our library, and the program's own libmpi.
//
// The last is there because our library NEEDs libmpi by its soname, and the loader looks for it
// along *our* search path: a libmpi that the program finds by its own RUNPATH would not be found.
// Preloading that very file settles the soname, and it comes after us in the search order of
// symbols.
#include "tool/launch/preload.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "tool/common/process.h"

namespace shima::tool {
namespace fs = std::filesystem;
namespace {

constexpr Build builds[] = {
    {"mpich", "libmpi.so.12", MpiFamily::mpich, "MPICH and its ABI family"},
    {"mpich-debian", "libmpich.so.12", MpiFamily::mpich, "MPICH as Debian and Ubuntu package it"},
    {"openmpi", "libmpi.so.40", MpiFamily::openmpi, "Open MPI 4 and 5"},
    {"abi", "libmpi_abi.so.1", MpiFamily::standard, "the standard ABI of MPI-5"},
    {"abi-0", "libmpi_abi.so.0", MpiFamily::standard, "the same under its first soname"},
};

// LD_PRELOAD is cut at colons and spaces, and knows no quoting.
std::vector<std::string> split_preload(const std::string& value) {
  std::vector<std::string> entries;
  std::string entry;
  for (const char c : value + ':') {
    if (c != ':' && c != ' ') {
      entry += c;
    } else if (!entry.empty()) {
      entries.push_back(std::exchange(entry, {}));
    }
  }
  return entries;
}

bool in_system_folder(const fs::path& library) {
  const std::string folder = library.parent_path().string();
  return folder.empty() || folder.starts_with("/lib") || folder.starts_with("/usr/lib");
}

void append_once(std::vector<std::string>& entries, const std::string& entry) {
  if (std::ranges::find(entries, entry) == entries.end()) entries.push_back(entry);
}

Outcome<void> must_be_preloadable(const fs::path& path) {
  if (path.string().find_first_of(": ") == std::string::npos) return {};
  return refuse(path.string(), "the loader cannot preload a path with a space or a colon",
                "install it, or link to it, under another path");
}

}  // namespace

std::span<const Build> known_builds() { return builds; }

const Build* build_named(std::string_view name) {
  for (const Build& build : builds)
    if (build.name == name) return &build;
  return nullptr;
}

const Build* build_for_library(std::string_view file_name) {
  for (const Build& build : builds) {
    if (!file_name.starts_with(build.soname)) continue;
    if (file_name.size() == build.soname.size() || file_name[build.soname.size()] == '.')
      return &build;
  }
  return nullptr;
}

std::string_view name_of(MpiFamily family) {
  if (family == MpiFamily::standard) return "an MPI with the standard ABI";
  return family == MpiFamily::mpich ? "MPICH" : "Open MPI";
}

fs::path preload_path(const Build& build) {
  const std::string file = "libshima-" + std::string(build.name) + ".so";
  return (own_folder() / "../lib/shima" / file).lexically_normal();
}

Outcome<void> add_to_preload(const UsedMpi& mpi) {
  const fs::path ours = preload_path(*mpi.build);
  if (!fs::exists(ours)) {
    return refuse(ours.string(), "this build of Shima is not installed",
                  "rebuild Shima on a machine with the headers of " +
                      std::string(name_of(mpi.build->family)));
  }
  std::vector<std::string> entries = split_preload(environment_value("LD_PRELOAD"));
  const std::string sanitizer = SHIMA_SANITIZER_RUNTIME;
  if (!sanitizer.empty() && std::ranges::find(entries, sanitizer) == entries.end())
    entries.insert(entries.begin(), sanitizer);
  if (auto status = must_be_preloadable(ours); !status) return status;
  append_once(entries, ours.string());
  if (!in_system_folder(mpi.library) && fs::exists(mpi.library)) {
    if (auto status = must_be_preloadable(mpi.library); !status) return status;
    append_once(entries, mpi.library.string());
  }
  std::string joined;
  for (const std::string& entry : entries) joined += (joined.empty() ? "" : ":") + entry;
  setenv("LD_PRELOAD", joined.c_str(), 1);
  return {};
}

}  // namespace shima::tool
