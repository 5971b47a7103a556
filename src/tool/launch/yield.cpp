// A rank of Open MPI polls wherever it waits. If there are more ranks than cores, it then keeps its
// core for a turn of the scheduler, 4 ms, from ranks that have work; so Open MPI makes ranks yield
// if it has started more of them than a node has slots. But the slots of a node are what a user or
// a batch system says, and may be more than its cores.
#include "tool/launch/yield.h"

#include <charconv>
#include <cstdlib>
#include <string>

#include "base/process/cpu_mask.h"
#include "tool/common/process.h"
#include "tool/launch/one_space.h"

namespace shima::tool {
namespace {

// 0: another launcher has started this process.
int ranks_of_openmpi_here() {
  const std::string text = environment_value("OMPI_COMM_WORLD_LOCAL_SIZE");
  int ranks = 0;
  std::from_chars(text.data(), text.data() + text.size(), ranks);
  return ranks;
}

}  // namespace

// The rank itself may be bound to a few of the cores.
void yield_if_cores_are_few() {
  const int ranks = ranks_of_openmpi_here();
  if (ranks <= 1) return;
  const int cores = CpuMask::of(launcher_process()).count();
  if (cores != 0 && ranks > cores) setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
}

}  // namespace shima::tool
