// The audit library (src/audit) puts in the builds, in every process that gets LD_AUDIT.  Other
// audit libraries stay in the list, before Shima's.  A sanitizer's runtime must be the first
// library of a process, so it is placed first in LD_PRELOAD.
#include "tool/launch/builds.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <vector>

#include "audit/soname.h"
#include "tool/common/process.h"

namespace shima::tool {
namespace fs = std::filesystem;
namespace {

constexpr std::array<std::string_view, 2> mpich_sonames{"libmpi.so.12", "libmpich.so.12"};
constexpr std::array<std::string_view, 1> openmpi_sonames{"libmpi.so.40"};
constexpr std::array<std::string_view, 2> abi_sonames{"libmpi_abi.so.1", "libmpi_abi.so.0"};

constexpr Build builds[] = {
    {"mpich", MpiFamily::mpich, mpich_sonames},
    {"openmpi", MpiFamily::openmpi, openmpi_sonames},
    {"abi", MpiFamily::standard, abi_sonames},
};

fs::path library_directory() { return (own_directory() / "../lib/shima").lexically_normal(); }

bool lists(const std::string& list, const std::string& entry) {
  return (":" + list + ":").find(":" + entry + ":") != std::string::npos;
}

Outcome<void> must_be_installed(const fs::path& library, const std::string& advice) {
  if (fs::exists(library)) return {};
  return refuse(library.string(), "this build of Shima is not installed", advice);
}

}  // namespace

std::span<const Build> known_builds() { return builds; }

const Build* build_named(std::string_view name) {
  for (const Build& build : builds)
    if (build.name == name) return &build;
  return nullptr;
}

const Build& build_of(MpiFamily family) {
  return *std::ranges::find(builds, family, &Build::family);
}

const Build* build_for_library(const fs::path& library) {
  auto family = audit::family_of(library.filename().native());
  const auto soname = std::make_unique<audit::Path>();
  if (!family && audit::read_soname(library.c_str(), *soname))
    family = audit::family_of(soname->view());
  return family ? &build_of(*family) : nullptr;
}

std::string_view name_of(MpiFamily family) {
  if (family == MpiFamily::standard) return "an MPI with the standard ABI";
  return family == MpiFamily::mpich ? "MPICH" : "Open MPI";
}

std::string sonames_of(const Build& build) {
  std::string list;
  for (const std::string_view soname : build.sonames)
    list += (list.empty() ? "" : ", ") + std::string(soname);
  return list;
}

fs::path library_of(const Build& build) {
  return library_directory() / audit::libraries_of(build.family).build;
}

Outcome<void> must_be_installed(const UsedMpi& mpi) {
  if (mpi.build == nullptr) return {};
  return must_be_installed(
      library_of(*mpi.build),
      "rebuild Shima on a machine with the headers of " + std::string(name_of(mpi.build->family)));
}

Outcome<void> export_audit() {
  const std::string library = library_directory() / audit::audit_file;
  if (auto status = must_be_installed(library, "install Shima completely"); !status) return status;
  if (library.find(':') != std::string::npos)
    return refuse(library, "the dynamic loader accepts no path with a colon",
                  "install it, or create a link to it, under another path");
  const std::string others = environment_value("LD_AUDIT");
  if (others.empty()) {
    setenv("LD_AUDIT", library.c_str(), 1);
  } else if (!lists(others, library)) {
    setenv("LD_AUDIT", (others + ":" + library).c_str(), 1);
  }
  const std::string sanitizer = SHIMA_SANITIZER_RUNTIME;
  const std::string preloaded = environment_value("LD_PRELOAD");
  if (!sanitizer.empty() && !lists(preloaded, sanitizer))
    setenv("LD_PRELOAD", (sanitizer + (preloaded.empty() ? "" : ":") + preloaded).c_str(), 1);
  return {};
}

}  // namespace shima::tool
