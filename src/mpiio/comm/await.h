// Waiting for MPI requests without spinning. MPI's own blocking calls occupy a whole core each;
// with more ranks than cores, another rank needs that core.
#pragma once

#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <functional>

#include "base/result.h"

namespace shima {

// Backs off between polls: yields a few times, then sleeps. The sleeps of `growing` become longer;
// those of `prompt` stay short, so that the end is seen within 100 us.
class Rest {
 public:
  enum class Pace { growing, prompt };
  explicit Rest(Pace pace = Pace::growing) : pace_(pace) {}
  void rest();
  void reset() { looks_ = 0; }

 private:
  Pace pace_;
  int looks_ = 0;
};

// Waits until `request` is complete. MPI does not tell whether the other ranks live. If `peers`
// finds a rank that does not, the request, and the memory that it moves, stay in use for ever.
using Peers = std::function<Status()>;
[[nodiscard]] Status await(MPI_Request& request, const char* doing, const Peers& peers = {});

// An MPI return code as a Status.
[[nodiscard]] Status checked(int mpi_code, const char* doing);

}  // namespace shima
