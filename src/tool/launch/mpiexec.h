// The launcher that belongs to an MPI.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tool/common/process.h"
#include "tool/launch/builds.h"

namespace shima::tool {

struct Mpiexec {
  std::filesystem::path path;
  std::optional<MpiFamily> family;  // empty: unknown
  std::string version;
  int major() const;
};

// Identifies an mpiexec by its --version.
[[nodiscard]] Mpiexec identify_mpiexec(const std::filesystem::path& path);

// The mpiexec of an MPI: the one the user names, else the one installed with the library.
[[nodiscard]] Outcome<Mpiexec> find_mpiexec(const UsedMpi& mpi, const std::string& from_user);

// "mpiexec -n 8 ...", without the program.
[[nodiscard]] Command launcher_command(const Mpiexec& mpiexec, int ranks,
                                       const std::vector<std::string>& extra);

// Whether a command of the user's starts ranks by itself: "mpirun -n 4 prog", "srun prog".
[[nodiscard]] bool is_launcher(const Command& command);

// A command that the user has written. If it is Open MPI's launcher, options are added that let it
// export Shima's settings to other nodes; their values are not in its arguments.
[[nodiscard]] Command with_forwarded_settings(const Command& command);

}  // namespace shima::tool
