// What a client is told of a file.
#pragma once

#include <sys/stat.h>

#include "store/remote/message.h"

namespace shima::iod {

// The device's number differs from those of other machines.
[[nodiscard]] remote::Facts told(const struct stat& facts);

}  // namespace shima::iod
