// The builds of Shima, one library for each ABI of MPI, and how they get into processes.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "audit/names.h"
#include "tool/common/failure.h"

namespace shima::tool {

using MpiFamily = audit::Family;

struct Build {
  std::string_view name;  // as in libshima-<name>.so
  MpiFamily family;       // whose mpi.h it was compiled with, whose mpiexec starts it
  std::span<const std::string_view> sonames;  // under which its MPIs are usually found
};

[[nodiscard]] std::span<const Build> known_builds();
[[nodiscard]] const Build* build_named(std::string_view name);
[[nodiscard]] const Build& build_of(MpiFamily family);
// The build for a library file: by its file name, else by its soname.
[[nodiscard]] const Build* build_for_library(const std::filesystem::path& library);
[[nodiscard]] std::string_view name_of(MpiFamily family);
// "libmpi.so.12, libmpich.so.12"
[[nodiscard]] std::string sonames_of(const Build& build);

// Where a build's library is; the tool and its libraries keep their places relative to each other.
[[nodiscard]] std::filesystem::path library_of(const Build& build);

// An MPI that a program uses: which build serves it and which file its library is.  Without a
// build, it is known only once a process loads it; the path may be empty.
struct UsedMpi {
  const Build* build = nullptr;
  std::filesystem::path library;
};

[[nodiscard]] Outcome<void> must_be_installed(const UsedMpi& mpi);

// Sets LD_AUDIT, so that the loader puts in the builds in this process's program and in all
// programs that it starts.
[[nodiscard]] Outcome<void> export_audit();

}  // namespace shima::tool
