// Lets a process that is at its soft limit of open files open a few more for a moment.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>

#include <cerrno>

#include "base/unique_fd.h"

namespace shima {

// While it lives the limit is the hard one, if there is no free descriptor at first. What is opened
// then stays open.
class SpareDescriptors {
 public:
  SpareDescriptors() {
    const UniqueFd any(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (any || errno != EMFILE || ::getrlimit(RLIMIT_NOFILE, &before_) != 0) return;
    const rlimit raised{before_.rlim_max, before_.rlim_max};
    is_raised_ = ::setrlimit(RLIMIT_NOFILE, &raised) == 0;
  }
  SpareDescriptors(const SpareDescriptors&) = delete;
  SpareDescriptors& operator=(const SpareDescriptors&) = delete;
  ~SpareDescriptors() {
    if (is_raised_) ::setrlimit(RLIMIT_NOFILE, &before_);
  }

 private:
  rlimit before_{};
  bool is_raised_ = false;
};

}  // namespace shima
