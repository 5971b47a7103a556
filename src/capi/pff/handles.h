// The objects behind the handles of pff.h.
#pragma once

#include <atomic>
#include <memory>

#include "base/direction.h"
#include "base/units.h"
#include "file/background.h"
#include "file/file.h"
#include "group/process_set.h"
#include "shima/pff.h"

struct pff_set {
  std::unique_ptr<shima::ProcessSet> members;
};

struct pff_file {
  std::unique_ptr<shima::File> file;
  bool in_set = false;
  // Threads for independent and for collective requests; started at first use.
  shima::Worker alone;
  shima::Worker together;
};

namespace shima::capi {

// A request, shared by its caller and the thread that executes it.
struct SharedRequest {
  // The first one to change it decides whether the request is executed.
  enum class Fate : std::uint8_t { waiting, begun, cancelled };

  explicit SharedRequest(bool others_wait) : takes_part(others_wait) {}

  std::atomic<Fate> fate{Fate::waiting};
  const bool takes_part;  // collective: others wait for it, even when it is cancelled
  Pending pending;
};

}  // namespace shima::capi

struct pff_request {
  std::shared_ptr<shima::capi::SharedRequest> shared;
};
