// What a C program's handles point to.
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
  // Threads that start when first needed: for what is done alone and together.
  shima::Worker alone;
  shima::Worker together;
};

namespace shima::capi {

// A request as its caller and the thread that carries it out share it.
struct SharedRequest {
  // Whoever changes it first decides whether the request is carried out.
  enum class Fate : std::uint8_t { waiting, begun, cancelled };

  explicit SharedRequest(bool others_wait) : takes_part(others_wait) {}

  std::atomic<Fate> fate{Fate::waiting};
  const bool takes_part;  // others wait for it, even when it is taken back
  Pending pending;
};

}  // namespace shima::capi

struct pff_request {
  std::shared_ptr<shima::capi::SharedRequest> shared;
};
