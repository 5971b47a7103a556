// The builds of Shima: one preload library for each name (soname) under which an MPI is linked.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tool/common/failure.h"

namespace shima::tool {

// `standard`: the ABI of MPI-5, which every MPI may offer.
enum class MpiFamily { mpich, openmpi, standard };

struct Build {
  std::string_view name;    // of the build, as in libshima-<name>.so
  std::string_view soname;  // of the libmpi it takes over
  MpiFamily family;         // whose mpi.h it was compiled with, whose mpiexec starts it
  std::string_view serves;  // for people
};

[[nodiscard]] std::span<const Build> known_builds();
[[nodiscard]] const Build* build_named(std::string_view name);
// The build for a library file: "libmpi.so.40" and "libmpi.so.40.30.4" are the same soname.
[[nodiscard]] const Build* build_for_library(std::string_view file_name);
[[nodiscard]] std::string_view name_of(MpiFamily family);

// Where a build's library is; the tool and its libraries keep their places relative to each other.
[[nodiscard]] std::filesystem::path preload_path(const Build& build);

// An MPI that a program uses: which build serves it and which file its library is.  The path may be
// empty, where only the build is known.
struct UsedMpi {
  const Build* build = nullptr;
  std::filesystem::path library;
};

// Adds the build's library to this process's LD_PRELOAD.
[[nodiscard]] Outcome<void> add_to_preload(const UsedMpi& mpi);

}  // namespace shima::tool
