// Waiting for MPI requests without spinning: MPI's own blocking calls take a whole core each, which
// on a machine with more ranks than cores is somebody else's.
#pragma once

#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <functional>

#include "base/result.h"

namespace shima {

// Rests between looks at something: yields a few times, then sleeps. The sleeps of `growing` become
// longer, those of `prompt` stay so short that the end is seen within 100 us.
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

// Waits until `request` is complete. The MPI does not tell whether others live; where `peers` finds
// that one does not, the request stays under way for ever, and with it the memory that it moves.
using Peers = std::function<Status()>;
[[nodiscard]] Status await(MPI_Request& request, const char* doing, const Peers& peers = {});

// An MPI return code as a Status.
[[nodiscard]] Status checked(int mpi_code, const char* doing);

}  // namespace shima
